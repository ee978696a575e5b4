// Beside programs that are not linked with a driver.
namespace oomrec::gpu_trial {
void reach_by_links();
void reach_by_links() {}
}  // namespace oomrec::gpu_trial
