import type { Logger } from 'pino'
import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { KubernetesClient } from '../../store/kubernetes/client.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'

/** As charts/mooring makes it: only what is not known before the installation runs is missing in it. */
const NAME = 'mooring-audit'
const WEBHOOK = 'audit.mooring.dev'
const PATH = `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${NAME}`
const KIND = { kind: { kind: 'ValidatingWebhookConfiguration', plural: 'validatingwebhookconfigurations', custom: false } }
const LOOK_MS = 60_000
/** What of it is told by the operator. */
const Told = z.object({
  webhooks: z.array(
    z.object({
      name: z.string(),
      clientConfig: z.object({ caBundle: z.string().optional(), service: z.object({ path: z.string().optional() }).optional() }),
    }),
  ),
})

/** The Service that the API server calls: a name of the certificate of the API. */
export const AUDIT_SERVICE = 'mooring-audit'

export interface AuditWebhookDeps {
  readonly client: Pick<KubernetesClient, 'request'>
  /** PEM of the authority that signed the certificate of the API. */
  readonly ca: string
  /** Where the API server takes entries. A secret. */
  readonly path: string
  readonly log: Pick<Logger, 'warn'>
}

/**
 * Tells the cluster where writes that do not come by REST are to be reported, and whom to trust there; again every minute, for an upgrade of
 * the chart may have taken it out. An installation without the webhook is left so. Dispose of it to stop.
 */
export async function keepAuditWebhook(deps: AuditWebhookDeps): Promise<Disposable> {
  const { client, ca, path, log } = deps
  const service = { namespace: SYSTEM_NAMESPACE, name: AUDIT_SERVICE, path }
  const caBundle = Buffer.from(ca).toString('base64')
  const body = { webhooks: [{ name: WEBHOOK, clientConfig: { caBundle, service } }] }

  async function isTold(): Promise<boolean> {
    const { status, body: found } = await client.request({ method: 'GET', path: PATH, idempotent: true })
    if (status !== 200) return false
    const config = Told.parse(found).webhooks.find(({ name }) => name === WEBHOOK)?.clientConfig
    return config?.caBundle === caBundle && config.service?.path === path
  }

  async function keep(): Promise<void> {
    // A write that changes nothing is none to the cluster, but one to whoever reads its audit log.
    if (await isTold()) return
    const answer = await client.request({
      ...{ method: 'PATCH', path: PATH, body, idempotent: true },
      // Webhooks are merged by their name.
      contentType: 'application/strategic-merge-patch+json',
    })
    if (answer.status >= 300 && answer.status !== 404) throw storeErrorOf(answer, { ...KIND, name: NAME })
  }

  async function tried(): Promise<void> {
    try {
      await keep()
    } catch (error) {
      log.warn({ err: error }, 'writes by kubectl are not told to the audit log: its webhook could not be set up')
    }
  }

  await tried()
  const timer = setInterval(() => void tried(), LOOK_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
