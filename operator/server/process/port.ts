import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { MooringError } from '../../../shared/errors.ts'

/** Ports below Linux' range for outgoing connections (32768 and above), which could take a port while its server is down. */
const LOWEST = 20_000
const HIGHEST = 32_000
const ATTEMPTS = 100

/** Whether a server could listen on the port now. */
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
  /** Former port of the server. */
  readonly preferred: number | undefined
  /** Ports of other servers, running or not. */
  readonly reserved: ReadonlySet<number>
}

/** Returns the former port if it is free, otherwise another free one. @throws MooringError `no_free_port` */
export async function choosePort({ host, preferred, reserved }: PortDeps): Promise<number> {
  if (preferred !== undefined && (await isFree(host, preferred))) return preferred
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if (!reserved.has(port) && (await isFree(host, port))) return port
  }
  throw new MooringError('no_free_port', `no free port between ${LOWEST} and ${HIGHEST} on ${host}`)
}
