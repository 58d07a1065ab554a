import type { Kind, Rule } from '../kind.ts'
import { CATALOG_KINDS } from '../roles.ts'
import { type StructuralSchema, structuralSchema, type ValidationRule } from './structural-schema.ts'
import { addRule, addTransitionRule } from './transition-rules.ts'

/** What `kubectl get mooring` lists: what a member of a namespace may see, and the catalog (crds/roles.ts). */
const CATEGORY = 'mooring'
/** What `kubectl get mooring-tenancy` lists: who there is, which only a platform admin may see. */
const TENANCY = 'mooring-tenancy'

const TYPE_META: Record<string, StructuralSchema> = {
  apiVersion: { type: 'string', description: 'Version of the schema that this object is written in.' },
  kind: { type: 'string', description: 'Kind of this object.' },
  metadata: { type: 'object' },
}

/** A rule can name only what the schema has: of `metadata`, an API server lets it have the name. */
const NAMED: StructuralSchema = { type: 'object', properties: { name: { type: 'string', maxLength: 253 } } }

const PARTS = { spec: 'What is wished for.', status: 'What is; written by the operator alone.' }

/** The CustomResourceDefinition (apiextensions.k8s.io/v1) of one of Mooring's own kinds. */
export function customResourceDefinition(kind: Kind) {
  const { group, plural, singular, shortNames, columns } = kind
  const category = kind.namespaced || CATALOG_KINDS.includes(plural) ? CATEGORY : TENANCY
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular, shortNames, categories: [category] },
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
  for (const rule of kind.rules) addRule(placeOf(rule, body), celRule(rule))
  const metadata = kind.rules.every(isOverSpec) ? TYPE_META : { ...TYPE_META, metadata: NAMED }
  return { ...body, description: kind.description, properties: { ...metadata, ...body.properties } }
}

function placeOf(rule: Rule, body: StructuralSchema): StructuralSchema {
  return (isOverSpec(rule) ? body.properties?.spec : undefined) ?? body
}

const isOverSpec = ({ field }: Rule): boolean => !field.startsWith('metadata.')

function celRule(rule: Rule): ValidationRule {
  const { cel, message, field } = rule
  const path = isOverSpec(rule) ? field.slice('spec'.length) : `.${field}`
  return path === '' ? { rule: cel, message } : { rule: cel, message, fieldPath: path }
}
