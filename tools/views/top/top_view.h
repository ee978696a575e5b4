// The live view: what it shows of a process, and what each key does. Independent of the terminal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/views/screen/chooser.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/layout.h"

namespace oomrec::tools::views {

class TopView {
 public:
  // `further_keys`: text for the last line, about keys that the caller handles.
  TopView(recording::LiveProcess process, std::shared_ptr<const recording::CacheDirectory> cache,
          const Choice& choice, std::string further_keys = {});

  // Reads the current figures. If the process has executed another program, it shows that one.
  void refresh();
  bool ended() const { return session_->ended(); }

  // False: the user quits.
  bool key(Key key);

  // Whether letters are commands: no prompt or list is open.
  bool takes_commands() const { return !search_ && !chooser_; }

  Picture picture(Size size, Charset charset);

  const recording::LiveSession& session() const { return *session_; }
  Scene scene(std::size_t most_rows, Charset charset);  // with the chosen rows

 private:
  struct Binding;
  static const std::vector<Binding>& bindings();

  void show(recording::LiveProcess process);
  void search(Key key);
  void open_chooser(std::string title, std::vector<Line> lines, std::size_t chosen,
                    std::function<void(std::size_t)> on_chosen);
  void choose_space();
  void choose_group();
  void choose_process();
  void show_stack();
  void show_help();
  std::string footer() const;

  std::shared_ptr<const recording::CacheDirectory> cache_;
  std::unique_ptr<recording::LiveSession> session_;
  std::unique_ptr<Table> table_;
  LiveHolders holders_;
  Choice choice_;
  Rows rows_;
  std::string further_keys_;
  std::string ending_;  // of a process that has ended
  bool paused_ = false;
  std::optional<Prompt> search_;  // while the user types it
  std::size_t selected_ = 0, scroll_ = 0;
  Size size_;
  std::optional<Chooser> chooser_;
  std::function<void(std::size_t)> on_chosen_;  // called with the chosen line
};

}  // namespace oomrec::tools::views
