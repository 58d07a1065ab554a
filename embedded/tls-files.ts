import type { Logger } from 'pino'
import { Secret } from '../crds/core.ts'
import { SYSTEM_NAMESPACE } from '../crds/names.ts'
import type { TunnelEndpoint } from '../crds/tunnel-endpoint.ts'
import { isPair, type KeyPair } from '../operator/certificates/local-ca.ts'
import { encodeSecret } from '../operator/secret-data.ts'
import { pollFiles } from '../process/polled-files.ts'
import { Path } from '../process/setting-rules.ts'
import { setting, type SettingsOf } from '../process/settings.ts'
import { MooringError } from '../shared/errors.ts'
import { isStoreError, type Store } from '../store/port.ts'
import { fileOf } from './acme/acme-files.ts'
import { type AcmeFlags, issuerFields } from './acme/acme-settings.ts'

/** Settings of a certificate of the administrator's own for tunnels, in embedded mode (docs/certificates.md). */
export const TLS_FILE_SETTINGS = {
  tlsCertFile: setting(
    Path,
    '<path>',
    'PEM file with a certificate for *.{domain} and its intermediates, for all tunnels; a change of the file takes effect within 10 s',
  ),
  tlsKeyFile: setting(Path, '<path>', 'PEM file with the private key of --tls-cert-file'),
} as const

type TlsFlags = SettingsOf<typeof TLS_FILE_SETTINGS>

/** Conflicts between these settings and others, a sentence each. */
export function tlsFileConflicts(flags: TlsFlags & { readonly issuerAcme: boolean }): readonly string[] {
  const { tlsCertFile, tlsKeyFile, issuerAcme } = flags
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    return ['mooring: --tls-cert-file and --tls-key-file need each other.']
  }
  return tlsCertFile !== undefined && issuerAcme ? ['mooring: --tls-cert-file cannot be used with --issuer-acme.'] : []
}

/** Code of the error about these files. */
export const TLS_FILE_UNUSABLE = 'tls_file_unusable'

/** Name of the Secret with the content of the files. */
const TLS_SECRET = 'tunnels-own-tls'

const OWN_CERTIFICATE_FIELDS: Pick<TunnelEndpoint['spec'], 'issuer' | 'certificates' | 'tlsSecretName'> = {
  issuer: 'local',
  certificates: 'wildcard',
  tlsSecretName: TLS_SECRET,
}

interface Deps {
  readonly store: Store
  readonly settings: TlsFlags & AcmeFlags
  readonly log: Logger
}

/** Issuer of the certificates of the tunnels of this process. */
interface TunnelIssuer {
  readonly issuer: Pick<TunnelEndpoint['spec'], 'issuer' | 'certificates' | 'acme' | 'tlsSecretName'>
  /** Registers a listener that is called when the Secret with the administrator's own certificate was replaced. */
  readonly onCertificateStored?: (listener: () => void) => void
}

/**
 * Opens the issuer that the settings choose. `--tls-cert-file` and its key are polled until `cleanup` is disposed.
 * @throws MooringError `tls_file_unusable`, `acme_file_unusable`
 */
export async function openTunnelIssuer(deps: Deps, cleanup: Pick<AsyncDisposableStack, 'use'>): Promise<TunnelIssuer> {
  const files = await openTlsFiles(deps)
  if (!files) return { issuer: await issuerFields(deps.store, deps.settings) }
  cleanup.use(files)
  return { issuer: OWN_CERTIFICATE_FIELDS, onCertificateStored: (listener) => files.onStored(listener) }
}

/** Files that are polled, and stored when they change. Disposing stops the polling. */
interface TlsFiles extends Disposable {
  /** Registers the listener that is called after each change was stored. */
  onStored(listener: () => void): void
}

/**
 * Stores the certificate of `--tls-cert-file` and its key in a Secret, now and after each change of the files. Whether the certificate suits
 * the endpoint is checked by the operator. Returns undefined without these settings.
 * @throws MooringError `tls_file_unusable` when a file cannot be read, or the files are not a certificate and its key
 */
async function openTlsFiles({ store, settings, log }: Deps): Promise<TlsFiles | undefined> {
  const { tlsCertFile, tlsKeyFile } = settings
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined
  const paths = { certificate: tlsCertFile, key: tlsKeyFile }
  const files = await pollFiles({
    read: () => readPair(paths),
    says: {
      changed: 'the certificate files of the tunnels have changed',
      failed: 'the certificate files of the tunnels are unusable',
    },
    log,
  })
  await keep(store, files.current())
  let stored: () => void = () => undefined
  files.onChange((pair) => {
    keep(store, pair).then(stored, (error: unknown) => log.error({ err: error }, 'the certificate of the tunnels was not stored'))
  })
  return {
    onStored: (listener) => {
      stored = listener
    },
    [Symbol.dispose]: () => files[Symbol.dispose](),
  }
}

async function readPair(paths: KeyPair): Promise<KeyPair> {
  const pair = {
    certificate: await fileOf('--tls-cert-file', paths.certificate, TLS_FILE_UNUSABLE),
    key: await fileOf('--tls-key-file', paths.key, TLS_FILE_UNUSABLE),
  }
  if (isPair(pair)) return pair
  const why = `--tls-cert-file must have a certificate in PEM, and --tls-key-file its private key; ${JSON.stringify(paths.certificate)} and ${JSON.stringify(paths.key)} are no such pair.`
  throw new MooringError(TLS_FILE_UNUSABLE, why)
}

async function keep(store: Deps['store'], { certificate, key }: KeyPair): Promise<void> {
  const name = { namespace: SYSTEM_NAMESPACE, name: TLS_SECRET }
  const data = encodeSecret({ 'tls.crt': certificate, 'tls.key': key })
  try {
    await store.create(Secret, { metadata: name, type: 'kubernetes.io/tls', data })
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    await store.mergePatch(Secret, name, { data })
  }
}
