import type { Kind, Rule } from './kind.ts'
import { type StructuralSchema, structuralSchema, type ValidationRule } from './structural-schema.ts'
import { addRule, addTransitionRule } from './transition-rules.ts'

/** `kubectl get mooring` lists every kind. */
const CATEGORY = 'mooring'

const TYPE_META: Record<string, StructuralSchema> = {
  apiVersion: { type: 'string', description: 'Version of the schema that this object is written in.' },
  kind: { type: 'string', description: 'Kind of this object.' },
  metadata: { type: 'object' },
}

const PARTS = { spec: 'What is wished for.', status: 'What is; written by the operator alone.' }

/** The CustomResourceDefinition (apiextensions.k8s.io/v1) of one of Mooring's own kinds. */
export function customResourceDefinition(kind: Kind) {
  const { group, plural, singular, shortNames, columns } = kind
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular, shortNames, categories: [CATEGORY] },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: objectSchema(kind) },
        },
      ],
    },
  }
}

/** Schema of a whole object: the body's, with the rules of the kind in their places. */
export function objectSchema(kind: Kind): StructuralSchema {
  const body = structuralSchema(kind.body)
  for (const [name, description] of Object.entries(PARTS)) {
    const part = body.properties?.[name]
    if (part) part.description ??= description
  }
  for (const path of kind.immutable) addTransitionRule(body, path)
  const spec = body.properties?.spec
  if (spec) for (const rule of kind.rules) addRule(spec, specRule(rule))
  return { ...body, description: kind.description, properties: { ...TYPE_META, ...body.properties } }
}

function specRule({ cel, message, field }: Rule): ValidationRule {
  const path = /^spec((?:\.\w+)+)$/.exec(field)?.[1]
  return path === undefined ? { rule: cel, message } : { rule: cel, message, fieldPath: path }
}
