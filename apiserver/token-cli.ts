import { Namespace, Secret } from '../crds/core.ts'
import { MooringError } from '../shared/errors.ts'
import { namespaceName, parseNamespacePath, SYSTEM_NAMESPACE } from '../crds/names.ts'
import { type CommandLine, readFlags } from '../process/settings.ts'
import { createKubernetesStore } from '../store/kubernetes.ts'
import { loadClusterConfig } from '../store/kubernetes/credentials.ts'
import { type IssuerKey, IssuerKeyFile, type TokenClaims } from './auth/issuer.ts'
import { printToken, readClaims, tokenCommand } from './auth/token-request.ts'

const SECRET = { namespace: SYSTEM_NAMESPACE, name: 'mooring-issuer' }
const ENTRY = 'issuer'

const openStore = async () => createKubernetesStore({ config: await loadClusterConfig(process.env) })

/** Reads the issuer's key from the cluster; the administrator needs the right to read the Secret. */
async function issuerOfCluster(): Promise<IssuerKey> {
  await using store = await openStore()
  const secret = await store.get(Secret, SECRET)
  const entry = secret?.data[ENTRY]
  if (entry === undefined) {
    throw new MooringError('no_issuer', `there is no Secret ${SECRET.name} in ${SECRET.namespace} yet: is the operator running?`)
  }
  const parsed = IssuerKeyFile.safeParse(JSON.parse(Buffer.from(entry, 'base64').toString('utf8')))
  // No cause: it would quote the key.
  if (!parsed.success) throw new MooringError('issuer_unreadable', `the Secret ${SECRET.name} does not hold an issuer's key`)
  return parsed.data
}

/** Returns whether the cluster has no Namespace for the path (`acme/prod`). False when that cannot be read, as without the right to. */
async function isMissing(path: string | undefined): Promise<boolean> {
  const slugs = path === undefined ? undefined : parseNamespacePath(path)
  if (!slugs) return false
  await using store = await openStore()
  const name = namespaceName(slugs.organization, slugs.namespace)
  return await store.get(Namespace, { name }).then(
    (found) => found === undefined,
    () => false,
  )
}

function parse(argv: readonly string[]): CommandLine<TokenClaims> {
  const about = 'Prints a token of this installation’s own issuer. The token is valid until it expires.'
  const flags = readFlags<Record<string, string>>(tokenCommand('node apiserver/token-cli.ts', about), argv)
  return 'exit' in flags ? flags : readClaims(flags.ok)
}

/** `kubectl -n mooring-system exec deploy/mooring-operator -- node apiserver/token-cli.ts --namespace acme/prod --role editor` */
await printToken(parse(process.argv.slice(2)), async (claims) => ({
  claims,
  issuer: await issuerOfCluster(),
  isMissing: () => isMissing(claims.namespace),
}))
