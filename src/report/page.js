/* The timeline of a page: a canvas with a lane per rank and stream, to zoom, to move and to ask. Its data
 * stands in the page as JSON (timeline-data); without it there is nothing to do here. */
(function () {
  'use strict';

  var source = document.getElementById('timeline-data');
  var view = document.getElementById('timeline-view');
  if (!source || !view) return;

  var data = JSON.parse(source.textContent);
  var UNIT_S = data.unit_s;
  var END = Math.max(data.end, 1);
  var LANE = 20, HEAD = 22, GAP = 4, AXIS = 24; /* px */
  var COLOURS = {
    forward: '#0072b2', backward: '#009e73', recompute: '#56b4e9', optimizer: '#f0e442',
    comm: '#d55e00', p2p: '#e69f00'
  };
  var INK = { forward: '#fff', backward: '#fff', recompute: '#000', optimizer: '#000', comm: '#fff', p2p: '#000' };

  /* -- data: five numbers a slice: op, gap since the last end, duration, wait before it, microbatch ---- */

  var lanes = data.lanes.map(function (lane, index) {
    var flat = lane.slices, n = flat.length / 5;
    var out = {
      index: index, rank: lane.rank, stream: lane.stream, n: n, y: 0, op: new Int32Array(n),
      start: new Float64Array(n), end: new Float64Array(n), wait: new Float64Array(n),
      microbatch: new Int32Array(n), critical: new Uint8Array(n)
    };
    for (var i = 0, at = 0; i < n; i++) {
      out.op[i] = flat[5 * i];
      out.start[i] = at + flat[5 * i + 1];
      out.end[i] = at = out.start[i] + flat[5 * i + 2];
      out.wait[i] = flat[5 * i + 3];
      out.microbatch[i] = flat[5 * i + 4];
    }
    return out;
  });
  for (var c = 0; c < data.critical.length; c += 2) lanes[data.critical[c]].critical[data.critical[c + 1]] = 1;

  var height = 0, heads = [];
  lanes.forEach(function (lane, i) {
    if (i === 0 || lanes[i - 1].rank !== lane.rank) {
      heads.push({ y: height, text: data.ranks[lane.rank] });
      height += HEAD;
    }
    lane.y = height;
    height += LANE + GAP;
  });

  /* -- what is on the page ------------------------------------------------------------------------- */

  var scroller = document.getElementById('timeline-lanes');
  var axis = document.getElementById('timeline-axis');
  var canvas = document.getElementById('timeline-canvas');
  var hover = document.getElementById('timeline-hover');
  var panel = document.getElementById('slice');
  var find = document.getElementById('timeline-find');
  var path = document.getElementById('timeline-critical');
  var from = 0, to = END, selected = null, width = 0, gutter = 0, frame = 0;

  function colour (name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function seconds (units, digits) {
    var s = units * UNIT_S, scale = [['s', 1], ['ms', 1e-3], ['\u00b5s', 1e-6], ['ns', 1e-9], ['ps', 1e-12]];
    if (s === 0) return '0 s';
    for (var i = 0; i < scale.length; i++) {
      if (Math.abs(s) >= scale[i][1] * 0.9999995 || i === scale.length - 1) {
        return Number((s / scale[i][1]).toPrecision(digits || 6)) + ' ' + scale[i][0];
      }
    }
    return '';
  }

  function quantity (value, unit) {
    var names = ['', 'k', 'M', 'G', 'T', 'P', 'E'], i = 0;
    while (value >= 1000 && i < names.length - 1) { value /= 1000; i++; }
    return Number(value.toPrecision(4)) + ' ' + names[i] + unit;
  }

  function x_of (time) { return gutter + (time - from) / (to - from) * (width - gutter); }
  function time_of (x) { return from + (x - gutter) / (width - gutter) * (to - from); }

  /* The first slice of a lane that ends after a time. */
  function first_after (lane, time) {
    var low = 0, high = lane.n;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (lane.end[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  /* -- drawing ------------------------------------------------------------------------------------- */

  function prepare (element, css_height) {
    var scale = window.devicePixelRatio || 1, context;
    element.style.height = css_height + 'px';
    element.width = Math.round(width * scale);
    element.height = Math.round(css_height * scale);
    context = element.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.textBaseline = 'middle';
    return context;
  }

  /* As much of a name as fits; an operation's layer, "L12 ", goes first. */
  function clip (context, text, room) {
    if (context.measureText(text).width <= room) return text;
    text = text.replace(/^L\d+ /, '');
    if (context.measureText(text).width <= room) return text;
    var n = Math.floor(text.length * room / context.measureText(text).width) - 1;
    return n < 3 ? '' : text.slice(0, n) + '\u2026';
  }

  function draw_axis () {
    var context = prepare(axis, AXIS), span = (to - from) * UNIT_S;
    var least = span / Math.max(2, (width - gutter) / 110), power = Math.pow(10, Math.floor(Math.log10(least)));
    var step = [1, 2, 5, 10].map(function (m) { return m * power; }).find(function (s) { return s >= least; }) / UNIT_S;
    context.font = '12px system-ui, "DejaVu Sans", sans-serif';
    context.fillStyle = colour('--soft');
    for (var tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      var x = x_of(tick), text = seconds(Math.round(tick / step) * step, 7);
      context.fillRect(x, AXIS - 5, 1, 5);
      if (x + context.measureText(text).width + 4 < width) context.fillText(text, x + 3, AXIS / 2);
    }
  }

  function draw_slice (context, lane, i, last) {
    var op = data.ops[lane.op[i]], left = Math.max(x_of(lane.start[i]), gutter), right = Math.min(x_of(lane.end[i]), width);
    if (lane.wait[i] > 0) {
      var begin = Math.max(x_of(lane.start[i] - lane.wait[i]), gutter), stop = Math.max(Math.min(left, width), begin);
      if (stop - begin >= 0.5) {
        context.fillStyle = colours.wait;
        context.fillRect(begin, lane.y + LANE / 2 - 3, stop - begin, 6);
      }
    }
    if (right < gutter || left > width) return last;
    /* What shares a column of pixels with the last slice is under it */
    if (right <= last) return last;
    context.fillStyle = COLOURS[op.category];
    context.globalAlpha = lane.microbatch[i] % 2 === 1 ? 0.78 : 1;
    context.fillRect(left, lane.y, Math.max(right - left - (right - left > 3 ? 0.7 : 0), 0.8), LANE);
    context.globalAlpha = 1;
    if (path.checked && lane.critical[i]) {
      context.fillStyle = colours.ink;
      context.fillRect(left, lane.y + LANE - 3, Math.max(right - left, 0.8), 3);
    }
    if (right - left > 34) {
      context.fillStyle = INK[op.category];
      context.fillText(clip(context, op.name, right - left - 8), left + 4, lane.y + LANE / 2 + 0.5);
    }
    return Math.max(last, Math.ceil(left), right - 0.2);
  }

  var colours = {};

  function draw_lane (context, lane) {
    var last = -1;
    for (var i = first_after(lane, from); i < lane.n && lane.start[i] - lane.wait[i] < to; i++) {
      last = draw_slice(context, lane, i, last);
    }
    context.fillStyle = colours.back;
    context.fillRect(0, lane.y, gutter, LANE);
    context.fillStyle = colours.soft;
    context.fillText(clip(context, lane.stream, gutter - 8), 6, lane.y + LANE / 2 + 0.5);
  }

  function draw_selected (context) {
    if (!selected) return;
    var lane = selected.lane, left = x_of(lane.start[selected.i]), right = x_of(lane.end[selected.i]);
    if (right < gutter || left > width) return;
    context.lineWidth = 2.5;
    context.strokeStyle = colours.back;
    context.strokeRect(Math.max(left, gutter) - 1, lane.y - 1, Math.max(right - Math.max(left, gutter), 2) + 1, LANE + 2);
    context.lineWidth = 1.5;
    context.strokeStyle = colours.ink;
    context.strokeRect(Math.max(left, gutter) - 2, lane.y - 2, Math.max(right - Math.max(left, gutter), 2) + 3, LANE + 4);
  }

  function draw () {
    frame = 0;
    width = view.clientWidth;
    gutter = width < 600 ? 74 : 132;
    var context = prepare(canvas, height + GAP);
    colours = { ink: colour('--ink'), soft: colour('--soft'), back: colour('--back'), wait: colour('--wait'), panel: colour('--panel') };
    context.font = '12px system-ui, "DejaVu Sans", sans-serif';
    lanes.forEach(function (lane) { draw_lane(context, lane); });
    heads.forEach(function (head) {
      context.fillStyle = colours.panel;
      context.fillRect(0, head.y, width, HEAD - 3);
      context.fillStyle = colours.ink;
      context.fillText(clip(context, head.text, width - 12), 6, head.y + (HEAD - 3) / 2 + 0.5);
    });
    draw_selected(context);
    draw_axis();
  }

  function redraw () {
    view.dataset.from = from * UNIT_S; /* for scripts that look on */
    view.dataset.to = to * UNIT_S;
    if (!frame) frame = requestAnimationFrame(draw);
  }

  /* -- moving -------------------------------------------------------------------------------------- */

  function show (begin, end) {
    var span = Math.min(Math.max(end - begin, END * 1e-6, 8), END);
    begin = Math.min(Math.max(begin, 0), END - span);
    from = begin;
    to = begin + span;
    redraw();
  }

  function zoom (factor, x) {
    var at = x === undefined ? (from + to) / 2 : time_of(x);
    show(at - (at - from) * factor, at + (to - at) * factor);
  }

  function pan (share) { show(from + share * (to - from), to + share * (to - from)); }

  /* -- slices -------------------------------------------------------------------------------------- */

  function slice_at (x, y) {
    var lane = lanes.find(function (l) { return y >= l.y - GAP / 2 && y < l.y + LANE + GAP / 2; });
    if (!lane || x < gutter) return null;
    var time = time_of(x), near = 3 / (width - gutter) * (to - from), best = null;
    for (var i = first_after(lane, time - near); i < lane.n && lane.start[i] - lane.wait[i] <= time + near; i++) {
      if (time >= lane.start[i] - lane.wait[i] && time <= lane.end[i]) return { lane: lane, i: i };
      best = best || { lane: lane, i: i };
    }
    return best;
  }

  function facts_of (slice) {
    var lane = slice.lane, i = slice.i, op = data.ops[lane.op[i]], length = lane.end[i] - lane.start[i];
    var facts = [['rank', data.ranks[lane.rank]], ['stream', lane.stream], ['kind', op.category],
      ['starts at', seconds(lane.start[i], 9)], ['lasts', seconds(length)]];
    if (lane.wait[i] > 0) facts.push(['waited for peers', seconds(lane.wait[i])]);
    if (op.axis) facts.push(['axis', op.axis]);
    if (op.layer >= 0) facts.push(['layer', String(op.layer)]);
    if (lane.microbatch[i] >= 0) facts.push(['microbatch', String(lane.microbatch[i])]);
    if (op.detail) facts.push(['detail', op.detail]);
    if (op.flops > 0) facts.push(['FLOPs', quantity(op.flops, 'FLOP') + rate(op.flops, length, 'FLOP/s')]);
    if (op.bytes > 0) facts.push([op.axis ? 'payload' : 'memory traffic', quantity(op.bytes, 'B') + rate(op.bytes, length, 'B/s')]);
    facts.push(['critical path', lane.critical[i] ? 'yes' : 'no']);
    return facts;
  }

  function rate (amount, length, unit) {
    return length > 0 ? ', ' + quantity(amount / (length * UNIT_S), unit) : '';
  }

  function element (tag, text) {
    var made = document.createElement(tag);
    made.textContent = text;
    return made;
  }

  function select (slice) {
    if (!slice) return;
    selected = slice;
    var list = document.createElement('dl');
    facts_of(slice).forEach(function (fact) {
      list.appendChild(element('dt', fact[0]));
      list.appendChild(element('dd', fact[1]));
    });
    panel.replaceChildren(element('h3', data.ops[slice.lane.op[slice.i]].name), list);
    redraw();
  }

  /* Selects it and moves so that it is seen. */
  function go (slice) {
    if (!slice) return;
    var start = slice.lane.start[slice.i], end = slice.lane.end[slice.i], span = to - from;
    select(slice);
    if (end < from || start > to) show((start + end - span) / 2, (start + end + span) / 2);
    if (slice.lane.y < scroller.scrollTop || slice.lane.y + LANE > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = slice.lane.y - HEAD;
    }
  }

  function neighbour (by) {
    if (!selected) {
      var lane = lanes.find(function (l) { return first_after(l, from) < l.n; });
      return lane ? { lane: lane, i: first_after(lane, from) } : null;
    }
    var i = selected.i + by;
    return i >= 0 && i < selected.lane.n ? { lane: selected.lane, i: i } : null;
  }

  function other_lane (by) {
    if (!selected) return neighbour(0);
    var at = selected.lane.start[selected.i];
    for (var l = selected.lane.index + by; l >= 0 && l < lanes.length; l += by) {
      if (lanes[l].n > 0) return { lane: lanes[l], i: Math.min(first_after(lanes[l], at), lanes[l].n - 1) };
    }
    return null;
  }

  function zoom_to_selected () {
    if (!selected) return;
    var start = selected.lane.start[selected.i], end = selected.lane.end[selected.i], room = (end - start) * 2;
    show(start - room, end + room);
  }

  /* The next slice by time whose name has the text, after the selected one, around the end. */
  function find_next () {
    var text = find.value.trim().toLowerCase();
    if (!text) return;
    var wanted = data.ops.map(function (op) { return op.name.toLowerCase().indexOf(text) >= 0; });
    var now = selected ? selected.lane.start[selected.i] : -1, mine = selected ? selected.lane.index : -1, after = null, first = null;
    lanes.forEach(function (lane) {
      for (var i = 0; i < lane.n; i++) {
        if (!wanted[lane.op[i]]) continue;
        var start = lane.start[i];
        if (!first || start < first.lane.start[first.i]) first = { lane: lane, i: i };
        if (start < now || (start === now && lane.index <= mine)) continue;
        if (!after || start < after.lane.start[after.i]) after = { lane: lane, i: i };
        break;
      }
    });
    if (!first) hover.textContent = 'no slice is named so: ' + find.value;
    else { go(after || first); zoom_to_selected(); }
  }

  /* -- keys, buttons, pointers --------------------------------------------------------------------- */

  var actions = {
    'zoom-in': function () { zoom(0.5); }, 'zoom-out': function () { zoom(2); },
    'left': function () { pan(-0.25); }, 'right': function () { pan(0.25); },
    'whole': function () { show(0, END); }, 'previous': function () { go(neighbour(-1)); },
    'next': function () { go(neighbour(1)); }, 'to-slice': zoom_to_selected, 'find': find_next
  };
  var keys = {
    ArrowLeft: 'left', ArrowRight: 'right', '+': 'zoom-in', '=': 'zoom-in', '-': 'zoom-out', 'w': 'zoom-in', 's': 'zoom-out',
    'a': 'left', 'd': 'right', '0': 'whole', Home: 'whole', 'p': 'previous', 'n': 'next', Enter: 'to-slice'
  };

  document.querySelectorAll('[data-action]').forEach(function (button) {
    button.addEventListener('click', actions[button.dataset.action]);
  });
  view.addEventListener('keydown', function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'ArrowUp' || event.key === 'ArrowDown') go(other_lane(event.key === 'ArrowUp' ? -1 : 1));
    else if (keys[event.key]) actions[keys[event.key]]();
    else return;
    event.preventDefault();
  });
  find.addEventListener('keydown', function (event) {
    if (event.key === 'Enter') { find_next(); event.preventDefault(); }
  });
  path.addEventListener('change', redraw);

  var pointers = new Map(), moved = 0;

  function place (event) {
    var box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /* One pointer drags, two pinch: the times under them stay under them. */
  function drag (id, at) {
    var before = Array.from(pointers.values()), n = before.length;
    var old_x = pointers.get(id).x;
    if (n === 1) {
      pan((old_x - at.x) / (width - gutter));
    } else if (n === 2) {
      var other = before.find(function (p) { return p !== pointers.get(id); });
      var old_distance = Math.max(Math.abs(old_x - other.x), 10), distance = Math.max(Math.abs(at.x - other.x), 10);
      zoom(old_distance / distance, other.x);
    }
    pointers.set(id, at);
  }

  canvas.addEventListener('pointerdown', function (event) {
    pointers.set(event.pointerId, place(event));
    moved = pointers.size > 1 ? Infinity : 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', function (event) {
    var at = place(event);
    if (pointers.has(event.pointerId)) {
      moved += Math.abs(at.x - pointers.get(event.pointerId).x);
      drag(event.pointerId, at);
      return;
    }
    var slice = slice_at(at.x, at.y);
    hover.textContent = slice ? data.ops[slice.lane.op[slice.i]].name + ', ' + seconds(slice.lane.end[slice.i] - slice.lane.start[slice.i], 4) : '';
  });
  function release (event) {
    var at = place(event);
    if (event.type === 'pointerup' && moved < 5) select(slice_at(at.x, at.y));
    pointers.delete(event.pointerId);
  }
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('dblclick', function (event) { zoom(0.4, place(event).x); });
  view.addEventListener('wheel', function (event) {
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * 0.004), place(event).x);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / (width - gutter));
    else return;
    event.preventDefault();
  }, { passive: false });

  window.addEventListener('resize', redraw);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  document.getElementById('timeline-controls').hidden = false;
  redraw();
})();
