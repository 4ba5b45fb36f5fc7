import HTTPCore
import PinObservation
import Trust

extension ObservedHost {
    /// What is recorded of a host, for people.
    package var text: String {
        var lines = [
            "\(name): seen from \(Self.time(firstSeen)) to \(Self.time(lastSeen))"
        ]
        for (index, chain) in chains.enumerated() {
            var how = "\(chain.verified) connections"
            if chain.reported > 0 {
                how += chain.verified > 0 ? ", and " : ""
                if chain.verified == 0 { how = "" }
                how += "\(chain.reported) that only a report-only pinset let pass"
            }
            lines.append("")
            lines.append("\(index + 1). \(chain.leaf.subject)")
            lines.append("   key:       \(chain.leaf.key.keyPinText)")
            lines.append("   issuer:    \(chain.leaf.issuer)")
            lines.append("   expires:   \(PinProposal.day(chain.leaf.notAfter))")
            lines.append(
                "   seen:      \(how), from \(Self.time(chain.firstSeen)) to "
                    + Self.time(chain.lastSeen))
            let addresses = chain.addresses.map { "\($0.address) (\($0.count))" }
            let more =
                chain.forgottenAddresses > 0 ? " and \(chain.forgottenAddresses) earlier" : ""
            lines.append("   addresses: \(addresses.joined(separator: ", "))\(more)")
            for path in chain.paths {
                lines.append(
                    "   path:      "
                        + (path.issuers.isEmpty ? "trusted itself" : "")
                        + path.issuers.map { "\($0.subject) \($0.key.keyPinText)" }
                        .joined(separator: "\n              < "))
            }
        }
        if forgottenChains > 0 {
            lines.append("")
            lines.append("\(forgottenChains) earlier certificates are no longer remembered.")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func time(_ seconds: Int64) -> String {
        CivilDate.text(secondsSince1970: seconds)
    }
}
