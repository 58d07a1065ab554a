/**
 * Names of the certificate that visitors are shown who ask for a hostname below the domain that no tunnel has, or for the domain itself: so they
 * are told so rather than cut off. It is of the installation's own CA whoever signs for the tunnels: by HTTP-01 no public authority may sign a
 * wildcard (CA/Browser Forum, Baseline Requirements, section 3.2.2.4.19), and the budget of public certificates is for tunnels. Pure.
 */
export function unknownHostNames(domain: string): readonly string[] {
  // Clients take no wildcard of a domain without a dot.
  return domain.includes('.') ? [`*.${domain}`, domain] : [domain]
}
