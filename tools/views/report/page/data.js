// The recording's data: a JSON text and typed arrays, deflated and in base64 inside the page. So
// 100,000 stacks take a few MiB, and need no parsing.
"use strict";

report.inflate = async (base64) => {
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
};

// Returns the members of the JSON text, and each array by its name.
report.unpack = (buffer) => {
  const kinds = {u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array};
  const length = new DataView(buffer).getUint32(0, true);
  const json = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const data = JSON.parse(json);
  if (data.schema_version !== 1)
    throw new Error(`data of version ${data.schema_version}, this page reads 1`);
  const first = Math.ceil((4 + length) / 8) * 8;
  for (const [name, {type, offset, length: elements}] of Object.entries(data.arrays)) {
    data[name] = new kinds[type](buffer, first + offset, elements);
  }
  for (const name
           of ["advice", "devices", "processes", "modules", "notes", "limits", "marks", "refusals"])
    data[name] ??= [];
  // ranks.json of a bundle may be damaged.
  if (data.job)
    data.job =
        {ranks: [], missing: [], left_out: [], clock: {}, job_id: null, first: null, ...data.job};
  // In a job's report the rows belong to its ranks. Otherwise this process' rows come from the
  // recording, and other processes' rows from their bundles.
  if (data.job) data.processes = data.job.ranks;
  data.own_process =
      data.job ? -1 : Math.max(0, data.processes.findIndex(({relation}) => relation === "self"));
  // In the format (docs/json.md), the arrays of locations are place_* and node_place.
  data.locations = data.place_function.length;
  data.nodes = data.node_parent.length;
  data.rows = data.row_node.length;
  // What a holder weighs at the end, as in `oomrec show`: all that it was given, or what of that is
  // in memory. A resident figure of −1 is unknown.
  data.row_weight_bytes = data.meta.weight === "resident" ?
      data.row_resident_bytes.map((bytes, row) => (bytes < 0 ? data.row_live_bytes[row] : bytes)) :
      data.row_live_bytes;
  data.checkpoints = data.c_time?.length ?? 0;
  data.moments = data.t_time?.length ?? 0;
  return data;
};

// A node's locations from the innermost out.
report.stackOf = (data, node) => {
  const locations = [];
  for (let at = node; at !== 0; at = data.node_parent[at]) locations.push(data.node_place[at]);
  return locations;
};
