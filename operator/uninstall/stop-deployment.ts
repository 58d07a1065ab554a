import { z } from 'zod'
import { SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { pause, systemClock } from '../../store/clock.ts'
import { storeErrorOf } from '../../store/kubernetes/status.ts'
import type { UninstallDeps } from './data.ts'

const LOOK_AGAIN_MS = 500
const List = z.object({ items: z.array(z.unknown()) })
const DEPLOYMENT = { kind: { kind: 'Deployment', plural: 'deployments', custom: false }, namespace: SYSTEM_NAMESPACE }

/** Scales a component to nothing and waits until its last pod is gone. One that is not there is stopped. */
export async function stopDeployment(
  { store: { client }, clock = systemClock }: UninstallDeps,
  component: 'operator' | 'apiserver',
): Promise<void> {
  const scaled = await client.request({
    method: 'PATCH',
    path: `/apis/apps/v1/namespaces/${SYSTEM_NAMESPACE}/deployments/mooring-${component}/scale`,
    contentType: 'application/merge-patch+json',
    body: { spec: { replicas: 0 } },
    idempotent: true,
  })
  if (scaled.status === 404) return
  if (scaled.status >= 300) throw storeErrorOf(scaled, { ...DEPLOYMENT, name: `mooring-${component}` })
  const labelSelector = `app.kubernetes.io/name=mooring,app.kubernetes.io/component=${component}`
  const never = new AbortController().signal
  for (;;) {
    const pods = await client.request({
      method: 'GET',
      path: `/api/v1/namespaces/${SYSTEM_NAMESPACE}/pods`,
      query: { labelSelector },
    })
    if (pods.status === 200 && List.parse(pods.body).items.length === 0) return
    await pause(clock, LOOK_AGAIN_MS, never)
  }
}
