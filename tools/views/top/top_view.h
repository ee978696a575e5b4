// The live view: what it shows of a process, and what each key does. Knows no terminal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/views/screen/chooser.h"
#include "tools/views/screen/prompt.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/layout.h"

namespace oomrec::tools::views {

class TopView {
 public:
  // `further_keys`: what whoever shows the view answers to itself, for the last line.
  TopView(recording::LiveProcess process, std::shared_ptr<const recording::CacheDirectory> cache,
          const Choice& choice, std::string further_keys = {});

  // Figures of now. A process that became another program is followed.
  void look();
  bool ended() const { return session_->ended(); }

  // False: the user wants to leave.
  bool key(Key key);

  // Letters are commands: nothing is being typed or chosen.
  bool takes_commands() const { return !search_ && !chooser_; }

  Picture picture(Size size, bool utf8);

  const recording::LiveSession& session() const { return *session_; }
  Scene scene(std::size_t most_rows, bool utf8);  // with the rows that the choice asks for

 private:
  struct Binding;
  static const std::vector<Binding>& bindings();

  void show(recording::LiveProcess process);
  void search(Key key);
  void open(std::string title, std::vector<Line> lines, std::size_t chosen,
            std::function<void(std::size_t)> take);
  void choose_space();
  void choose_group();
  void choose_process();
  void show_stack();
  void show_help();
  std::string foot() const;

  std::shared_ptr<const recording::CacheDirectory> cache_;
  std::unique_ptr<recording::LiveSession> session_;
  std::unique_ptr<Table> table_;
  HoldersNow holders_;
  Choice choice_;
  Rows rows_;
  std::string further_keys_;
  std::string ending_;  // of a process that has ended
  bool paused_ = false;
  std::optional<Prompt> search_;  // while it is typed
  std::size_t selected_ = 0, scroll_ = 0;
  Size size_;
  std::optional<Chooser> chooser_;
  std::function<void(std::size_t)> take_;  // what was chosen in it
};

}  // namespace oomrec::tools::views
