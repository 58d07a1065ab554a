import type { Logger } from 'pino'
import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { every } from '../../shared/timers.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'

/** Names of the objects in charts/mooring. The chart leaves out what is known only after the installation. */
const NAME = 'mooring-audit'
const WEBHOOK = 'audit.mooring.dev'
const PATH = `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${NAME}`
const KIND = { kind: { kind: 'ValidatingWebhookConfiguration', plural: 'validatingwebhookconfigurations', custom: false } }
const POLL_MS = 60_000
/** Fields of the webhook that the operator sets. */
const Webhooks = z.object({
  webhooks: z.array(
    z.object({
      name: z.string(),
      clientConfig: z.object({ caBundle: z.string().optional(), service: z.object({ path: z.string().optional() }).optional() }),
    }),
  ),
})

/** Service that the API server calls: one of the names in the certificate of the API. */
export const AUDIT_SERVICE = 'mooring-audit'

export interface AuditWebhookDeps {
  readonly client: Pick<KubernetesClient, 'request'>
  /** CA, in PEM, of the certificate of the API. */
  readonly ca: string
  /** Path at which the API server accepts entries. A secret. */
  readonly path: string
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Sets path and CA of the webhook by which the cluster reports writes that do not pass the REST API. Repeated every minute, as an upgrade
 * of the chart may reset them. An installation without the webhook is left unchanged. Dispose of it to stop.
 */
export async function keepAuditWebhook(deps: AuditWebhookDeps): Promise<AsyncDisposable> {
  const { client, ca, path, log } = deps
  const service = { namespace: SYSTEM_NAMESPACE, name: AUDIT_SERVICE, path }
  const caBundle = Buffer.from(ca).toString('base64')
  const body = { webhooks: [{ name: WEBHOOK, clientConfig: { caBundle, service } }] }

  async function isConfigured(): Promise<boolean> {
    const { status, body: found } = await client.request({ method: 'GET', path: PATH, idempotent: true })
    if (status !== 200) return false
    const config = Webhooks.parse(found).webhooks.find(({ name }) => name === WEBHOOK)?.clientConfig
    return config?.caBundle === caBundle && config.service?.path === path
  }

  async function keep(): Promise<void> {
    // A write without a change is invisible in the object, but not in the audit log of the cluster.
    if (await isConfigured()) return
    const request = {
      method: 'PATCH',
      path: PATH,
      body,
      idempotent: true,
      // Strategic merge identifies webhooks by name.
      contentType: 'application/strategic-merge-patch+json',
    } as const
    const answer = await client.request(request)
    if (answer.status >= 300 && answer.status !== 404) throw storeErrorOf(answer, { ...KIND, name: NAME, request })
  }

  const tried = () =>
    keep().catch((error: unknown) => {
      log.warn({ err: error }, 'the webhook of the audit log could not be configured: writes by kubectl are not recorded at once')
    })
  await tried()
  return every(POLL_MS, tried)
}
