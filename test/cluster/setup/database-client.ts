import type { Kubernetes } from './commands.ts'
import { KUBECTL_WAIT } from '../../support/patience.ts'

/** Database of a tenant, and the image of Mooring, which has a PostgreSQL client. */
export interface ClientPod {
  readonly namespace: string
  readonly database: string
  readonly image: string
}

const MOUNT = '/login'
/** Script that runs the statement of its argument with the login of the Secret, and prints its rows and the time. */
const SCRIPT = `
const { readFileSync } = require('node:fs')
const { Client } = require('/app/node_modules/pg')
const of = (key) => readFileSync('${MOUNT}/' + key, 'utf8')
const login = { host: of('host'), port: Number(of('port')), user: of('username'), password: of('password'), database: of('database') }
const client = new Client({ ...login, ssl: { ca: of('ca.crt') }, connectionTimeoutMillis: 5000 })
const main = async () => {
  await client.connect()
  const { rows } = await client.query(process.argv[1])
  console.log(JSON.stringify({ rows, at: new Date() }))
  await client.end()
}
main().catch((error) => { console.error(error.message); process.exit(1) })
`

export interface Result {
  readonly rows: readonly object[]
  /** Time after the statement, by the clock of the pod. */
  readonly at: string
}

/** Runs a statement in a database from a pod of its namespace. A failed attempt, such as at a server that starts, is repeated. */
export async function queryFromPod({ kubectl }: Pick<Kubernetes, 'kubectl'>, pod: ClientPod, text: string): Promise<Result> {
  const { namespace, database, image } = pod
  const name = `client-${crypto.randomUUID().slice(0, 8)}`
  const container = { name: 'client', image, imagePullPolicy: 'IfNotPresent', command: ['node', '-e', SCRIPT, text] }
  const volume = { name: 'login', secret: { secretName: `${database}-credentials` } }
  await kubectl(['create', '--filename', '-'], {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace } },
    spec: {
      restartPolicy: 'OnFailure',
      containers: [{ ...container, volumeMounts: [{ name: 'login', mountPath: MOUNT }] }],
      volumes: [volume],
    },
  })
  const about = [`pod/${name}`, '--namespace', namespace]
  await kubectl(['wait', '--for=jsonpath={.status.phase}=Succeeded', ...about, KUBECTL_WAIT])
  const output = await kubectl(['logs', ...about])
  await kubectl(['delete', ...about, '--grace-period=1'])
  return JSON.parse(output) as Result
}
