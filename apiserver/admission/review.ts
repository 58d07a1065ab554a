import { z } from 'zod'

const ReviewedObject = z.looseObject({
  kind: z.string().max(63),
  metadata: z.looseObject({
    uid: z.string().max(128),
    name: z.string().max(253),
    namespace: z.string().max(63).optional(),
    generation: z.int().min(1).optional(),
    ownerReferences: z.array(z.looseObject({ kind: z.string(), uid: z.string() })).optional(),
  }),
  spec: z.record(z.string(), z.unknown()).optional(),
  status: z.record(z.string(), z.unknown()).optional(),
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }).optional(),
  subjects: z.array(z.looseObject({ name: z.string() })).optional(),
})
const Reviewed = ReviewedObject.nullish().transform((object) => object ?? undefined)
export type Reviewed = z.output<typeof Reviewed>

/** AdmissionReview v1 request of the Kubernetes API server: the fields that an audit entry needs. */
export const AdmissionReview = z.looseObject({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({
    uid: z.string().max(128),
    subResource: z.string().optional(),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    userInfo: z.looseObject({ username: z.string().max(1024) }),
    object: Reviewed,
    oldObject: Reviewed,
    dryRun: z.boolean().nullish(),
  }),
})
export type AdmissionRequest = z.output<typeof AdmissionReview>['request']

/** AdmissionReview response that allows the write. */
export const allowed = (uid: string) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, allowed: true },
})
