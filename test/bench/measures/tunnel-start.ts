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
  method: `${ROUNDS} times on each side in turn: OpenSSH's client is started, and the tunnel is asked again and again, each time a millisecond after the last answer, until it answers 200. The start of the process is part of it.`,
  run,
}
