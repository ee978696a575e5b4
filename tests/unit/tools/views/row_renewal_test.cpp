// Rows of earlier rules of signatures get today's.
#include "tools/views/export/row_history.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tools/base/json.h"
#include "tools/bundles/signature/signature.h"

using namespace oomrec::tools;

namespace {

std::string frame(const std::string& kind, const std::string& function, const std::string& file,
                  bool own) {
  return fmt::format(
      R"({{"kind":"{}","function":"{}","file":"{}","line":7,"module":null,"build_id":null,"offset":null,"own":{}}})",
      kind, function, file, own);
}

// A row of rules that knew a cause by the script's name.
std::string old_row(const std::string& more = {}) {
  const std::string frames = frame("python", "Cache.remember", "shop/cache.py", true) + "," +
                             frame("python", "handle", "shop/api.py", true);
  return R"({"schema_version":1,"kind":"death","signature":"api.py cache","signature_version":0,)"
         R"("cause":"leak","limit_bytes":1000,"request":null,"service":"shop",)"
         R"("column_of_later_releases":3,)" +
         more + R"("holders":[{"space":"heap","device":null,"bytes":900,"resident_bytes":null,)" +
         R"("count":3,"estimated":false,"sig":"?","frames":[)" + frames + "]}]}";
}

}  // namespace

TEST_CASE("an old row gets today's signature and keeps its own as the alias") {
  const Json row = parse_json(views::renewed_row(old_row()));
  CHECK(text_of(row, "signature") == "cache.py:remember <- api.py:handle");
  CHECK(text_of(row, "signature_coarse") == "cache.py:remember");
  CHECK(text_of(row, "signature_alias") == "api.py cache");
  CHECK(number_of(row, "signature_version") == bundles::kSignatureVersion);
  CHECK(text_of(row, "title") == "cache.py:remember ← api.py:handle");
  CHECK(text_of(row, "cause") == "leak");
  CHECK(number_of(row, "column_of_later_releases") == 3);
  CHECK(text_of(*member(row, "holders").begin(), "sig") == "cache.py:remember <- api.py:handle");
}

TEST_CASE("the alias is the first name that it ever had") {
  const Json row = parse_json(views::renewed_row(old_row(R"("signature_alias":"oldest",)")));
  CHECK(text_of(row, "signature_alias") == "oldest");
}

TEST_CASE("a giant request is a cause by today's rules, too") {
  const std::string request = R"("request":{"size":2000000,"frames":[)" +
                              frame("native", "read_all", "src/read.cpp", true) + "]},";
  std::string line = old_row();
  line.replace(line.find("\"request\":null,"), 15, request);
  const Json row = parse_json(views::renewed_row(line));
  CHECK(text_of(row, "signature") == "read_all");
  CHECK(text_of(row, "cause") == "giant_request");
}

TEST_CASE("other lines stay as they are") {
  const std::string today =
      fmt::format(R"({{"kind":"death","signature_version":{}}})", bundles::kSignatureVersion);
  for (const std::string& line :
       {today, std::string{R"({"kind":"life","signature_version":0})"}, std::string{"not JSON"},
        std::string{}, std::string{R"({"signature_version":"x"})"}, std::string{"[1,2]"},
        std::string{R"({"kind":"death","signature_version":99})"}})
    CHECK(views::renewed_row(line) == line);
}
