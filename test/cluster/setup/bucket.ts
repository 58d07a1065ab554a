import { readdir } from 'node:fs/promises'
import { ROOT_KEY, startS3Server } from '../../support/backup/s3-server.ts'
import type { Kubernetes } from './commands.ts'
import type { SecondCluster } from './cluster.ts'

const BUCKET = 'backups'
const SECRET = 'backup-key'

/** Bucket for the backups of a cluster, on an S3 server of this machine. */
export interface Bucket extends AsyncDisposable {
  /** The chart's value `backups`. */
  readonly values: object
  /** Texts that only the Secret with the key of the bucket may have. */
  readonly secrets: readonly string[]
  /** Creates that Secret in a namespace. */
  createSecret(namespace: string): Promise<void>
  /** Returns the paths of the objects in the bucket. */
  objects(): Promise<readonly string[]>
}

export async function startBucket({ hostAddress: host, clients }: SecondCluster): Promise<Bucket> {
  await using cleanup = new AsyncDisposableStack()
  const server = cleanup.use(await startS3Server({ host }))
  const directory = await server.createBucket(BUCKET)
  const stringData = { AWS_ACCESS_KEY_ID: ROOT_KEY.accessKeyId, AWS_SECRET_ACCESS_KEY: ROOT_KEY.secretAccessKey }
  const ownership = cleanup.move()
  return {
    values: {
      ...{ enabled: true, url: `s3://${BUCKET}/mooring`, secretName: SECRET, region: 'us-east-1', endpoint: server.endpoint },
      egress: [{ cidr: `${host}/32`, port: server.port }],
    },
    secrets: [ROOT_KEY.secretAccessKey, Buffer.from(ROOT_KEY.secretAccessKey).toString('base64')],
    async createSecret(namespace) {
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace }, stringData }
      await clients.kubectl(['create', '--filename', '-'], secret)
    },
    async objects() {
      const entries = await readdir(directory, { recursive: true, withFileTypes: true })
      return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => `${parentPath}/${name}`)
    },
    [Symbol.asyncDispose]: () => ownership.disposeAsync(),
  }
}

/** Returns the objects of a cluster whose content has one of the texts, and the pods of Mooring whose log has. */
export async function placesWith({ kubectl }: Pick<Kubernetes, 'kubectl'>, texts: readonly string[]): Promise<readonly string[]> {
  const has = (content: string): boolean => texts.some((text) => content.includes(text))
  const everywhere = ['--all-namespaces', '--output', 'json']
  const kinds = (await kubectl(['api-resources', '--verbs=list', '--output', 'name'])).split('\n')
  const { items } = JSON.parse(await kubectl(['get', kinds.join(','), ...everywhere])) as { readonly items: readonly Found[] }
  const objects = items.filter((item) => has(JSON.stringify(item)))
  const logs: string[] = []
  for (const { kind, metadata } of items) {
    if (kind !== 'Pod' || !metadata.namespace?.startsWith('mooring-')) continue
    const log = await kubectl(['logs', metadata.name, '--namespace', metadata.namespace, '--all-containers', '--tail=-1'])
    if (has(log)) logs.push(`log of ${metadata.name}`)
  }
  return [...objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`), ...logs]
}

interface Found {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}
