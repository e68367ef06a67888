/** Draws the charts of a report where its page has places for them. Runs in browsers. */
import { drawChart } from './charts.js'

const charts = JSON.parse(document.getElementById('charts').textContent)
for (const place of document.querySelectorAll('[data-chart]'))
  drawChart(place, charts[place.dataset.chart])
