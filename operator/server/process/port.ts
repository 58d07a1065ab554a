import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { MooringError } from '../../../shared/errors.ts'

/** Below the range that Linux gives to outgoing connections (32768 up), which would take a port while its server is down. */
const LOWEST = 20_000
const HIGHEST = 32_000
const ATTEMPTS = 100

/** Whether a server could listen there now. */
export async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer()
  server.listen({ host, port, exclusive: true })
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  const closed = once(server, 'close')
  server.close()
  await closed
  return true
}

interface PortDeps {
  readonly host: string
  /** The port it had before. */
  readonly preferred: number | undefined
  /** Ports that belong to other servers, running or not. */
  readonly reserved: ReadonlySet<number>
}

/** The port it had, if nobody has taken that; else a free one. @throws MooringError `no_free_port` */
export async function choosePort({ host, preferred, reserved }: PortDeps): Promise<number> {
  if (preferred !== undefined && (await isFree(host, preferred))) return preferred
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if (!reserved.has(port) && (await isFree(host, port))) return port
  }
  throw new MooringError('no_free_port', `no free port between ${LOWEST} and ${HIGHEST} on ${host}`)
}
