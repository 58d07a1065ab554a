import { z } from 'zod'

const Reviewed = z
  .looseObject({
    kind: z.string().max(63),
    metadata: z.looseObject({
      uid: z.string().max(128),
      name: z.string().max(253),
      namespace: z.string().max(63),
      generation: z.int().min(1).optional(),
    }),
    spec: z.record(z.string(), z.unknown()).optional(),
  })
  .nullish()

/** What the API server asks of a webhook (Kubernetes, "Dynamic Admission Control": AdmissionReview v1), as far as an audit entry needs it. */
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

/** The answer: whatever it was, it may go on. */
export const allowed = (uid: string) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, allowed: true },
})
