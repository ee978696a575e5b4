// How the live view is laid out on a terminal: a picture of what is given, and nothing else.
#pragma once

#include <string>

#include "tools/recording/live/session.h"
#include "tools/views/screen/picture.h"
#include "tools/views/top/table.h"

namespace oomrec::tools::views {

// What a picture is made of.
struct Scene {
  const recording::LiveSession& session;
  const HoldersNow& holders;
  const Table& table;
  const Choice& choice;
  const Rows& rows;
  std::size_t selected = 0, scroll = 0;  // rows
  std::string foot;                      // the last line: keys, a question, how it ended
  bool paused = false;
  bool utf8 = true;
};

// How many rows of the table there is room for.
std::size_t table_rows(const recording::LiveSession&, Size);

// The whole screen, or its upper part where the program's output has the lower one.
Picture picture_of(const Scene&, Size);

// Without a chart, for pipes: `top` rows.
Picture snapshot_of(const Scene&, std::size_t columns);

// The first line of every page: process, mode, time.
Line title_of(const recording::LiveSession&, std::size_t columns, std::string_view state);

// "all spaces  all threads  merged frames".
std::string choice_text(const Choice&, const HoldersNow&);

}  // namespace oomrec::tools::views
