import { finding, type Measure } from '../measure.ts'
import { startPair } from '../tunnel/pair.ts'
import { beside, compared, rounds } from '../tunnel/rounds.ts'

const ROUNDS = 21
const BLOCK = 7

async function run() {
  await using pair = await startPair()
  const times = await rounds([pair.edge, pair.peer], ROUNDS, (side) => side.connectAnew())
  return [
    finding('ssh started to the first 200', beside(times, 'ms'), 40),
    finding('against sshd + nginx', compared(times, BLOCK), 0.4),
  ]
}

export const tunnelStart: Measure = {
  name: 'tunnel-start',
  method: `${ROUNDS} times on each side, in turn: OpenSSH's client starts, and a visitor repeats a request, one millisecond after each response, until the tunnel responds with 200. The time includes the start of the client process.`,
  run,
}
