// The recording's figures: a JSON text and typed arrays, deflated and in base64 inside of the page,
// so that 100,000 stacks are a few MiB and are there without being parsed.
"use strict";

report.inflate = async (base64) => {
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
};

// The members of the JSON text, and each array by its name.
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
  // Of a job the rows are its ranks'. Else those of this process are the recording's own, those of
  // others are of their bundles.
  if (data.job) data.processes = data.job.ranks;
  data.own_process =
      data.job ? -1 : Math.max(0, data.processes.findIndex(({relation}) => relation === "self"));
  data.places = data.place_function.length;
  data.nodes = data.node_parent.length;
  data.rows = data.row_node.length;
  data.checkpoints = data.c_time?.length ?? 0;
  data.moments = data.t_time?.length ?? 0;
  return data;
};

// A node's places from the innermost out.
report.stackOf = (data, node) => {
  const places = [];
  for (let at = node; at !== 0; at = data.node_parent[at]) places.push(data.node_place[at]);
  return places;
};
