// For programs that do not link a driver.
namespace oomrec::gpu_trial {
void reach_by_links();
void reach_by_links() {}
}  // namespace oomrec::gpu_trial
