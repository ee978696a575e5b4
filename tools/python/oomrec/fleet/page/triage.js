// Shows the data of `oomrec fleet report`. Names are other people's: they only ever become text
// nodes.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const panel = document.getElementById('panel');
const search = document.getElementById('search');
const view = {
  tab: 'causes',
  sort: null,
  down: true,
  at: 0,
  open: null
};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => child instanceof Node ? child : String(child)));
  return made;
}

function drawing(width, height, ...shapes) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('width', width);
  for (const [tag, attributes, title] of shapes) {
    const shape = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
    if (title) {
      shape.append(document.createElementNS(space, 'title'));
      shape.firstChild.textContent = title;
    }
    svg.append(shape);
  }
  return svg;
}

function size(bytes) {
  if (bytes === null || bytes === undefined) return '–';
  let value = Number(bytes);
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (Math.abs(value) < 1024) return `${value.toFixed(unit === 'B' ? 0 : 1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

const count = (value) => Number(value || 0).toLocaleString('en');
const percent = (value) => value === null ? '–' : `${Math.round(100 * value)} %`;
const STATES = {
  new: '▲ new',
  regressed: '▲ again',
  ongoing: ''
};
const CAUSES = {
  leak: 'leak',
  limit_too_low: 'limit too low',
  giant_request: 'one giant request'
};
const service = (cause) => cause.facets.service ? cause.facets.service.values[0][0] : '';

// Columns: title, value to sort by, text, whether it is a figure.
const COLUMNS = {
  causes: [
    ['State', (row) => row.state, (row) => STATES[row.state], false],
    ['Largest holder', (row) => row.title || row.signature, null, false],
    ['Deaths', (row) => row.deaths, (row) => count(row.deaths), true],
    [
      'GiB hours', (row) => row.lost_gib_hours, (row) => count(Math.round(row.lost_gib_hours)), true
    ],
    ['Share', (row) => row.top_share || 0, (row) => percent(row.top_share), true],
    ['Service', service, null, false],
    ['Cause', (row) => CAUSES[row.cause] || '', null, false],
  ],
  sizes: [
    ['Service', (row) => row.service, null, false],
    ['Limit', (row) => row.limit_bytes || 0, (row) => size(row.limit_bytes), true],
    ['p50', (row) => row.need_p50_bytes || 0, (row) => size(row.need_p50_bytes), true],
    ['p95', (row) => row.need_p95_bytes || 0, (row) => size(row.need_p95_bytes), true],
    ['p99', (row) => row.need_p99_bytes || 0, (row) => size(row.need_p99_bytes), true],
    ['Lives', (row) => row.lives, (row) => count(row.lives), true],
    ['Deaths', (row) => row.deaths, (row) => count(row.deaths), true],
    [
      'Set', (row) => row.recommended_bytes || 0,
      (row) => row.recommended_bytes ? size(row.recommended_bytes) : 'no answer', true
    ],
    ['Why', (row) => row.why, null, false],
  ],
};

function shown() {
  const word = search.value.toLowerCase();
  const rows =
      data[view.tab].filter((row) => !word || JSON.stringify(row).toLowerCase().includes(word));
  if (view.sort === null) return rows;
  const value = COLUMNS[view.tab][view.sort][1];
  const order = (one, other) => value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0;
  return rows.sort((one, other) => view.down ? order(other, one) : order(one, other));
}

function bars(days) {
  const most = Math.max(1, ...days.map((day) => day[1]));
  const width = Math.max(4, Math.min(24, Math.floor(480 / Math.max(1, days.length))));
  return drawing(width * days.length, 60, ...days.map(([day, deaths], n) => {
    const height = Math.max(1, 58 * deaths / most);
    return [
      'rect', {x: n * width + 1, y: 60 - height, width: width - 1, height},
      `${day}: ${count(deaths)}`
    ];
  }));
}

function curve(death) {
  const most = Math.max(1, death.limit_bytes || 0, ...death.timeline_rss.map(Number));
  const last = Math.max(1, ...death.timeline_ms);
  const y = (bytes) => 118 - 110 * bytes / most;
  const points =
      death.timeline_rss.map((bytes, n) => `${480 * death.timeline_ms[n] / last},${y(bytes || 0)}`);
  const shapes = [['polyline', {points: points.join(' ')}, 'resident memory']];
  if (death.limit_bytes) {
    const at = y(death.limit_bytes);
    shapes.push(['line', {x1: 0, x2: 480, y1: at, y2: at}, `limit ${size(death.limit_bytes)}`]);
  }
  return drawing(480, 120, ...shapes);
}

function frames(holder) {
  return element(
      'ul', {class: 'stack'},
      ...holder.frames.map(
          ([name, file, line, own]) => element(
              'li', {class: own ? 'own' : ''}, name || '?', file ? ` (${file}:${line})` : '')));
}

function detail(cause) {
  const left = element(
      'div', {}, element('h2', {}, 'Deaths by day'), bars(cause.days), element('h2', {}, 'Where'));
  for (const [name, facet] of Object.entries(cause.facets)) {
    const listed = facet.values.map(([value, deaths]) => `${value} (${count(deaths)})`).join(', ');
    const more = facet.different - facet.values.length;
    left.append(element(
        'div', {}, element('span', {class: 'quiet'}, `${name}: `),
        listed + (more > 0 ? ` and ${count(more)} more` : '')));
  }
  left.append(element(
      'div', {class: 'quiet'},
      `first ${cause.first_seen.slice(0, 19)}, last ${cause.last_seen.slice(0, 19)}`));
  const right = element('div');
  const death = cause.typical;
  if (death) {
    right.append(
        element('h2', {}, 'A typical death'),
        element('div', {}, death.summary || death.verdict || ''),
        element(
            'div', {class: 'quiet'},
            `${death.host || '–'}, ${death.release || '–'}, limit ${size(death.limit_bytes)}, ` +
                `resident ${size(death.rss_bytes)}; oomrec fleet show ${death.death_id}`),
        curve(death), element('h2', {}, 'Holders'));
    for (const holder of death.holders) {
      right.append(
          element('div', {}, `${size(holder.bytes)} in ${count(holder.count)} blocks`),
          frames(holder));
    }
  }
  return element('div', {class: 'detail'}, left, right);
}

function draw() {
  for (const tab of ['causes', 'sizes']) {
    document.getElementById(`tab-${tab}`).setAttribute('aria-selected', view.tab === tab);
  }
  const columns = COLUMNS[view.tab];
  const rows = shown();
  view.at = Math.max(0, Math.min(view.at, rows.length - 1));
  const head = element('tr', {}, ...columns.map(([title, , , figure], n) => {
    const cell = element('th', {scope: 'col', class: figure ? 'figure' : ''}, title);
    if (view.sort === n) cell.setAttribute('aria-sort', view.down ? 'descending' : 'ascending');
    cell.addEventListener('click', () => {
      view.down = view.sort === n ? !view.down : true;
      view.sort = n;
      draw();
    });
    return cell;
  }));
  const body = element('tbody');
  rows.forEach((row, n) => {
    const line = element(
        'tr', {class: n === view.at ? 'row at' : 'row'},
        ...columns.map(
            ([title, value, text, figure]) => element(
                'td',
                {class: figure         ? 'figure' :
                     title === 'State' ? `state-${row.state}` :
                                         ''},
                (text || value)(row))));
    line.addEventListener('click', () => {
      view.at = n;
      view.open = view.open === row ? null : row;
      draw();
    });
    body.append(line);
    if (view.open === row && view.tab === 'causes') {
      body.append(element('tr', {}, element('td', {colspan: columns.length}, detail(row))));
    }
  });
  panel.replaceChildren(element('table', {}, element('thead', {}, head), body));
  if (!rows.length) panel.append(element('p', {class: 'quiet'}, 'Nothing matches.'));
}

function select(tab) {
  Object.assign(view, {tab, sort: null, at: 0, open: null});
  draw();
}

function move(by) {
  view.at += by;
  draw();
  const line = panel.querySelector('tr.at');
  if (line) line.scrollIntoView({block: 'nearest'});
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') {
    view.open = null;
    search.blur();
  } else if (document.activeElement === search) {
    return;
  } else if (event.key === '/') {
    search.focus();
  } else if (event.key === 'j' || event.key === 'ArrowDown') {
    move(1);
  } else if (event.key === 'k' || event.key === 'ArrowUp') {
    move(-1);
  } else if (event.key === 'Enter' && document.activeElement.tagName !== 'BUTTON') {
    const row = shown()[view.at];
    view.open = view.open === row ? null : row;
  } else {
    return;
  }
  event.preventDefault();
  draw();
});
search.addEventListener('input', draw);
for (const tab of ['causes', 'sizes'])
  document.getElementById(`tab-${tab}`).addEventListener('click', () => select(tab));
document.getElementById('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme.includes('light dark') ?
      matchMedia('(prefers-color-scheme: dark)').matches :
      document.documentElement.dataset.theme === 'dark';
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
});
const total = data.total;
document.getElementById('facts').textContent =
    `${data.url}, ${data.window.since.slice(0, 10)} to ${data.window.until.slice(0, 10)}: ${
        count(total.deaths)} deaths, ` +
    `${count(total.signatures)} signatures, ${count(total.hosts)} hosts, ${
        count(Math.round(total.lost_gib_hours))} GiB hours lost ` +
    `(the time before: ${count(data.before.deaths)} deaths)${
        data.rejected ? `; ${data.rejected}` : ''}`;
draw();
