import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { finding, type Measure } from '../measure.ts'
import { LARGE_BYTES } from '../tunnel/nginx.ts'
import { type Side, startPair } from '../tunnel/pair.ts'
import { atLeast, beside, compared, rounds, sample, wrk } from '../tunnel/rounds.ts'

const run = promisify(execFile)
const ROUNDS = 15
const BLOCK = 5
const MIB = 1024 * 1024

/** Downloads the large file once. @returns the rate in MiB a second */
async function download(side: Side): Promise<number> {
  const url = `http://127.0.0.1:${side.httpPort}/large`
  const args = [
    '--silent',
    '--output',
    '/dev/null',
    '--write-out',
    '%{time_total} %{size_download}',
    '--header',
    `Host: ${side.hosts[0] ?? ''}`,
    url,
  ]
  const [seconds = 0, bytes = 0] = (await run('curl', args)).stdout.split(' ').map(Number)
  if (bytes !== LARGE_BYTES) throw new Error(`${side.name} sent ${bytes} of ${LARGE_BYTES} bytes`)
  return bytes / MIB / seconds
}

async function runBulk() {
  await using pair = await startPair()
  const rates = await rounds([pair.edge, pair.peer], ROUNDS, download)
  return [
    atLeast('64 MiB download against sshd + nginx', compared(rates, BLOCK), 1.4),
    finding('64 MiB download', beside(rates, 'MiB/s', 0)),
  ]
}

export const tunnelBulk: Measure = {
  name: 'tunnel-bulk',
  method: `The tunnel of tunnel-requests. curl downloads 64 MiB ${ROUNDS} times through each side, in turn. The ratio compares medians in blocks of ${BLOCK}.`,
  run: runBulk,
}

const DOWNLOADS = 4
const SMALL = 8
const SECONDS = 5

async function runFairness() {
  await using pair = await startPair()
  const taken = await rounds([pair.edge, pair.peer], 5, async (side) => {
    // Downloads run longer than the sample, so that they load the tunnel for all of it.
    const downloads = wrk(side, { connections: DOWNLOADS, seconds: SECONDS + 2, path: '/large' })
    const small = await sample(side, { connections: SMALL, seconds: SECONDS })
    await downloads
    return small.p99
  })
  return [
    finding('p99 of small requests beside 4 downloads', beside(taken, 'ms'), 12),
    finding('against sshd + nginx', compared(taken, 5)),
  ]
}

export const tunnelFairness: Measure = {
  name: 'tunnel-fairness',
  method: `The tunnel of tunnel-requests, with ${DOWNLOADS} connections that repeat a download of 64 MiB, and ${SMALL} connections of small requests at the same time: 5 rounds of ${SECONDS} s on each side, in turn.`,
  run: runFairness,
}
