import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, createServer, get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type DashboardBrowser, openDashboardBrowser } from '../../support/browser/dashboard-browser.ts'
import { startMooring } from '../../support/deployment/mooring.ts'
import { person } from '../../support/edge/openssh.ts'
import { finding, type Measure } from '../measure.ts'
import { UNLIMITED } from '../setup.ts'
import { median } from '../statistics.ts'
import { atLeast } from '../tunnel/rounds.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'
const LOADS = 10
const RATE = 2_000
const TICK_MS = 10
const SECONDS = 10

/** Sends requests at a rate until `signal` aborts, each when it is due. Resolves with the number of responses. */
async function visitors(port: number, host: string, signal: AbortSignal): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  let [sent, answered] = [0, 0]
  const start = performance.now()
  while (!signal.aborted) {
    for (; sent < ((performance.now() - start) / 1_000) * RATE; sent++) {
      get({ host: '127.0.0.1', port, agent, path: `/page/${sent}`, headers: { Host: host } }, (response) => {
        response.resume().once('end', () => (answered += 1))
      }).once('error', () => undefined)
    }
    await delay(TICK_MS)
  }
  agent.destroy()
  return answered
}

/** Frames in a number of seconds on the page, and the size of its heap in MB. */
const FRAMES = `(async () => {
  const begin = performance.now()
  let frames = 0
  while (performance.now() - begin < ${SECONDS * 1_000}) {
    await new Promise(requestAnimationFrame)
    frames += 1
  }
  return [frames / ((performance.now() - begin) / 1_000), performance.memory.usedJSHeapSize / 1e6]
})()`

async function firstPaint(browser: DashboardBrowser, url: string): Promise<number> {
  const paints: number[] = []
  for (let load = 0; load < LOADS; load++) {
    const page = await browser.page()
    await page.goto(`${url}/dashboard`)
    await page.getByLabel('Token').waitFor()
    paints.push(await page.evaluate<number>(`performance.getEntriesByName('first-contentful-paint')[0].startTime`))
    await page.context().close()
  }
  return median(paints)
}

async function run() {
  await using backend = createServer((_request, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(backend, 'listening')
  const { port } = backend.address() as { readonly port: number }
  await using mooring = await startMooring({ args: UNLIMITED })
  await using user = await person()
  const config = { authorizedKeys: [user.publicKey] }
  const body = { name: 'bench', regionId: mooring.ready.regionId, config }
  const { tunnel } = (await mooring.call('POST', TUNNELS, { body })).body.data
  await user.forward(tunnel, port)
  const { sharedUrl, httpPort, token } = mooring.ready
  await using browser = await openDashboardBrowser({ sharedUrl, ca: await readFile(mooring.ready.ca, 'utf8') })
  const paint = await firstPaint(browser, sharedUrl)

  const end = new AbortController()
  const visited = visitors(httpPort, `${tunnel.hostname}.${tunnel.endpoint.domain}`, end.signal)
  const page = await browser.signedIn(token, `/dashboard/o/default/default/tunnels/${tunnel.hostname}/requests`)
  await page.getByText('live', { exact: true }).waitFor()
  const [frames = 0] = await page.evaluate<number[]>(FRAMES)
  const [later = 0, heap = 0] = await page.evaluate<number[]>(FRAMES)
  end.abort()
  await visited
  return [
    finding('first paint of the dashboard, median', { value: paint, unit: 'ms', digits: 0 }, 500),
    atLeast(
      `frames a second with the live tail of ${RATE} requests a second`,
      { value: Math.min(frames, later), unit: '', digits: 0 },
      60,
    ),
    finding('heap of that page', { value: heap, unit: 'MB', digits: 0 }),
  ]
}

export const dashboard: Measure = {
  name: 'dashboard',
  method: `An embedded Mooring with one tunnel, and Chromium without a GPU, on this machine. The sign-in page is loaded ${LOADS} times. Then visitors send ${RATE} requests a second while the page with the live tail counts its frames for ${2 * SECONDS} s. Mooring, visitors, backend and browser share the two processors.`,
  run,
}
