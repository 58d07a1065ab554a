import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { KubernetesClient } from '../../../store/kubernetes/client.ts'

/** Destination of a connection attempt. */
export interface Destination {
  readonly host: string
  readonly port: number
}

export interface Visitor {
  readonly namespace: string
  /** Image that contains node. */
  readonly image: string
}

const CONNECT_MS = 3_000
const LOOK_AGAIN_MS = 50

/** Script that writes the result for each destination, `open` or an error code, to the termination log, which the kubelet reads. */
const SCRIPT = `
const { connect } = require('node:net')
const { writeFileSync } = require('node:fs')
const attempt = ({ host, port }) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: ${CONNECT_MS} })
  const end = (word) => { socket.destroy(); resolve(word) }
  socket.once('connect', () => end('open')).once('timeout', () => end('timeout')).once('error', (error) => end(error.code))
})
Promise.all(JSON.parse(process.argv[1]).map(attempt)).then((words) => writeFileSync('/dev/termination-log', JSON.stringify(words)))
`

const Ended = z.object({
  status: z.object({
    containerStatuses: z.array(z.object({ state: z.object({ terminated: z.object({ message: z.string() }) }) })).length(1),
  }),
})

/**
 * Tries to connect from a new pod. Returns the result for each destination, in order: `open`, `timeout` or an error code.
 */
export async function visit(client: KubernetesClient, from: Visitor, destinations: readonly Destination[]): Promise<string[]> {
  const name = `visitor-${randomBytes(4).toString('hex')}`
  const path = `/api/v1/namespaces/${from.namespace}/pods`
  const command = ['node', '-e', SCRIPT, JSON.stringify(destinations)]
  const container = { name: 'visitor', image: from.image, imagePullPolicy: 'IfNotPresent', command }
  const body = { metadata: { name }, spec: { restartPolicy: 'Never', containers: [container] } }
  const made = await client.request({ method: 'POST', path, body })
  if (made.status !== 201) throw new Error(`the visitor pod was rejected: ${JSON.stringify(made.body)}`)
  for (;;) {
    const { body } = await client.request({ method: 'GET', path: `${path}/${name}` })
    const ended = Ended.safeParse(body).data?.status.containerStatuses[0]
    if (ended) return z.array(z.string()).parse(JSON.parse(ended.state.terminated.message))
    await delay(LOOK_AGAIN_MS)
  }
}
