export interface Reviewed {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  /** The spec as it will be. */
  readonly object?: object
  /** The spec as it was. */
  readonly oldObject?: object
  readonly username?: string
  readonly subResource?: string
  readonly dryRun?: boolean
}

/** What an API server of Kubernetes 1.34 sends to a webhook about a Tunnel, field by field. */
export function auditReview({
  operation,
  object,
  oldObject,
  username = 'ada@example.org',
  subResource,
  dryRun = false,
}: Reviewed) {
  const resource = { group: 'mooring.dev', version: 'v1alpha1', resource: 'tunnels' }
  const kind = { group: 'mooring.dev', version: 'v1alpha1', kind: 'Tunnel' }
  const whole = (spec: object | undefined, generation: number) =>
    spec && {
      apiVersion: 'mooring.dev/v1alpha1',
      kind: 'Tunnel',
      metadata: {
        creationTimestamp: '2026-01-02T03:00:00Z',
        generation,
        managedFields: [{ apiVersion: 'mooring.dev/v1alpha1', fieldsType: 'FieldsV1', manager: 'kubectl', operation: 'Update' }],
        name: 'web',
        namespace: 'acme--prod',
        resourceVersion: '4711',
        uid: '8c6c4b0e-7a9e-4f0f-9a3f-1d3e5f7a9b2c',
      },
      spec,
      status: { hostname: '0123456789abcdef' },
    }
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
      ...{ kind, resource, requestKind: kind, requestResource: resource },
      ...(subResource !== undefined && { subResource, requestSubResource: subResource }),
      ...{ name: 'web', namespace: 'acme--prod', operation, dryRun },
      userInfo: { username, groups: ['developers', 'system:authenticated'], extra: { 'example.org/mfa': ['yes'] } },
      object: whole(object, oldObject ? 2 : 1) ?? null,
      oldObject: whole(oldObject, 1) ?? null,
      options: { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'kubectl-edit' },
    },
  }
}
