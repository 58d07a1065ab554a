import { workerData } from 'node:worker_threads'
import type { AdminTarget, Tenant } from '../../../operator/engines/engine.ts'
import { mongodbAdmin } from '../../../operator/engines/mongodb/mongodb.ts'

/** What a worker of this file receives. Claims the tenant with a copy of the template, in the memory that the worker has. */
export interface Claim {
  readonly target: AdminTarget
  readonly tenant: Tenant
  readonly template: string
}

const { target, tenant, template } = workerData as Claim
await using admin = mongodbAdmin(target)
await admin.claim(tenant, { connections: 12 }, { template })
