// The layout of the live view: turns a scene into a picture.
#pragma once

#include <string>

#include "tools/recording/live/session.h"
#include "tools/views/screen/picture.h"
#include "tools/views/top/table.h"

namespace oomrec::tools::views {

// Everything that a picture shows.
struct Scene {
  const recording::LiveSession& session;
  const LiveHolders& holders;
  const Table& table;
  const Choice& choice;
  const Rows& rows;
  std::size_t selected = 0, scroll = 0;  // rows
  std::string footer;                    // the last line: keys, a prompt, or the process's end
  bool paused = false;
  Charset charset = Charset::utf8;
};

// How many rows of the table fit on the screen.
std::size_t table_rows(const recording::LiveSession&, Size);

// For the whole screen, or for the part above the program's output (live_run).
Picture picture_of(const Scene&, Size);

// Without a chart and with all rows of the scene, for pipes.
Picture snapshot_of(const Scene&, std::size_t columns);

// The first line of every page: process, mode, time.
Line title_of(const recording::LiveSession&, std::size_t columns, std::string_view state);

// "all spaces · all threads · all frames".
std::string choice_text(const Choice&, const LiveHolders&);

}  // namespace oomrec::tools::views
