#include "tools/views/export/row_renewal.h"

#include <exception>
#include <optional>
#include <vector>

#include "tools/base/json.h"
#include "tools/base/json_budget.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/signature.h"
#include "tools/views/export/format.h"
#include "tools/views/export/row.h"

namespace oomrec::tools::views {
namespace {

using bundles::Frames;
using bundles::Holder;

const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const Json& list = member(object, key);
  return list.type() == Json::Type::array ? list : kNone;
}

Frames frames_of(const Json& of) {
  Frames frames;
  for (const Json& each : list_of(of, "frames")) {
    const std::string kind = text_of(each, "kind").value_or("");
    bundles::Frame frame;
    frame.python = kind == "python";
    frame.script = frame.python || kind == "script";
    frame.own = member(each, "own") == Json(true);
    frame.function = text_of(each, "function").value_or("");
    frame.file = text_of(each, "file").value_or("");
    frame.module = text_of(each, "module").value_or("");
    frame.build_id = text_of(each, "build_id").value_or("");
    frame.offset = number_of(each, "offset").value_or(0);
    frames.push_back(bundles::with_key(std::move(frame)));
  }
  return frames;
}

Holder holder_of(const Json& of) {
  Holder holder;
  holder.bytes = number_of(of, "bytes").value_or(0);
  holder.resident_bytes = number_of(of, "resident_bytes");
  holder.frames = frames_of(of);
  return holder;
}

std::optional<bundles::Request> request_of(const Json& row) {
  const Json& request = member(row, "request");
  const auto size = number_of(request, "size");
  if (!size) return std::nullopt;
  return bundles::Request{*size, number_of(row, "limit_bytes").value_or(0), frames_of(request)};
}

void renew(Json& row) {
  std::vector<Holder> holders;
  for (const Json& each : list_of(row, "holders")) holders.push_back(holder_of(each));
  const bundles::Signature signature =
      bundles::signature_of(holders, request_of(row), text_of(row, "service").value_or(""));
  if (text_of(row, "signature_alias").value_or("").empty())
    row["signature_alias"] = Json(member(row, "signature"));
  const std::string cause = text_of(row, "cause").value_or("");
  const bool was_request = cause == "giant_request";
  write_signature(row, signature);
  row["cause"] = signature.is_request ? Json("giant_request")
                                      : text_or_null(was_request ? std::string{} : cause);
  Json renewed = Json::array();
  std::size_t i = 0;
  for (const Json& each : list_of(row, "holders")) {
    Json holder = each;
    holder["sig"] = text_or_null(bundles::path_key(holders[i++].frames));
    renewed.push_back(std::move(holder));
  }
  row["holders"] = std::move(renewed);
}

}  // namespace

std::string renewed_row(std::string_view line) try {
  Json row = parse_json(line);
  const auto version = number_of(row, "signature_version");
  if (!version || *version >= bundles::kSignatureVersion || text_of(row, "kind") == "life")
    return std::string{line};
  renew(row);
  return json_text(row);
} catch (const std::exception&) {
  return std::string{line};
}

}  // namespace oomrec::tools::views
