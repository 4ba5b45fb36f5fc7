import HTTPCore
import PinfoldTLS
import Trust

/// A certificate or key with its pins.
package struct PinnedItem: Hashable, Sendable {
    /// Where it comes from.
    package enum Origin: String, Hashable, Sendable {
        /// The server sent it, or the file holds it.
        case given
        /// It was not sent; the verified chain ends at this trust anchor.
        case anchor
    }

    package var origin: Origin
    /// SHA-256 of the SubjectPublicKeyInfo.
    package var key: SHA256Digest
    /// SHA-256 of the certificate, or `nil` for a bare public key.
    package var fingerprint: SHA256Digest?
    /// The certificate's subject, or `nil` for a bare public key.
    package var subject: String?
    /// Details of the certificate, or `nil` if only its identity or its key is known.
    package var inspection: CertificateInspection?

    /// Reads a certificate in DER.
    package init(certificate der: [UInt8]) throws(CertificateError) {
        let inspection = try CertificateInspection(certificate: der)
        origin = .given
        key = inspection.identity.key
        fingerprint = inspection.identity.fingerprint
        subject = inspection.identity.subject
        self.inspection = inspection
    }

    /// Reads a bare public key, a SubjectPublicKeyInfo in DER.
    package init(publicKey der: [UInt8]) throws(CertificateError) {
        origin = .given
        key = try CertificateInspection.keyDigest(publicKey: der)
    }

    /// A trust anchor in the verified chain that was not sent.
    package init(anchor: CertificateIdentity) {
        origin = .anchor
        key = anchor.key
        fingerprint = anchor.fingerprint
        subject = anchor.subject
    }

    /// Whether it is a CA certificate, or `nil` if that is unknown.
    package var isAuthority: Bool? { origin == .anchor ? true : inspection?.isAuthority }

    /// The pin in curl's format, for `--pinnedpubkey`.
    package var curlPin: String { "sha256//" + key.keyPinText.dropFirst("sha256/".count) }
}

/// The certificates of a server or a file with their pins, and how to print them.
package struct ChainReport: Sendable {
    /// The source: a host and port, or a file.
    package var source: String
    /// The name of the proposed pinset.
    package var name: String
    /// The host pattern of the proposed entry, or `nil` for a file.
    package var host: String?
    /// The trust anchors that the chain was verified against, in the format of `tls.roots`; empty
    /// for the default ones.
    package var roots: [String]
    package var items: [PinnedItem]
    /// `connected to 192.0.2.1:443, TLS 1.3`, or `nil` for a file.
    package var connection: String?
    /// The verdict on the chain, or `nil` for a file.
    package var verdict: Verdict?

    /// The verdict on a server's chain.
    package enum Verdict: Hashable, Sendable {
        case trusted
        /// The reason's token, as in the gateway's replies, and its description.
        case refused(token: String, detail: String)
    }

    package init(
        source: String, name: String, host: String? = nil, roots: [String] = [],
        items: [PinnedItem],
        connection: String? = nil, verdict: Verdict? = nil
    ) {
        self.source = source
        self.name = name
        self.host = host
        self.roots = roots
        self.items = items
        self.connection = connection
        self.verdict = verdict
    }

    // MARK: For people

    /// The chain, its pins in every format, and a configuration fragment.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    package func text(now: Int64) -> String {
        var lines = [connection.map { "\(source): \($0)" } ?? source]
        switch verdict {
        case .trusted: lines.append("verdict: trusted")
        case .refused(let token, let detail): lines.append("verdict: refused: \(token): \(detail)")
        case nil: break
        }
        for (index, item) in items.enumerated() {
            lines.append("")
            lines.append(
                "\(index + 1). \(Self.kind(item)): \(item.subject ?? "a bare public key")")
            if let inspection = item.inspection {
                lines.append("   issuer:      \(inspection.issuer)")
                if !inspection.names.isEmpty {
                    lines.append("   names:       \(inspection.names.joined(separator: ", "))")
                }
                let end = CivilDate.text(secondsSince1970: inspection.notAfter)
                let days = CivilDate.days(from: now, to: inspection.notAfter)
                lines.append("   valid until: \(end) (\(days) days)")
            }
            lines.append("   pin:         \(item.key.keyPinText)")
            lines.append("   curl:        \(item.curlPin)")
            if let fingerprint = item.fingerprint {
                lines.append("   fingerprint: \(fingerprint.fingerprintText)")
            }
        }
        return lines.joined(separator: "\n") + "\n\n" + configuration
    }

    private static func kind(_ item: PinnedItem) -> String {
        if item.origin == .anchor { return "trust anchor, not sent" }
        guard let isAuthority = item.isAuthority else { return "key" }
        return isAuthority ? "issuer" : "server"
    }

    /// The pins to start with: the server's own and its issuer's.
    package var proposed: [PinnedItem] {
        var proposed: [PinnedItem] = []
        for item in items.prefix(2) where !proposed.contains(where: { $0.key == item.key }) {
            proposed.append(item)
        }
        return proposed
    }

    /// A configuration fragment that pins the host, with advice in comments.
    package var configuration: String {
        var lines = [
            "# The server's own key is the narrowest pin, but must be updated here before the",
            "# server changes its key. The issuer's key outlasts renewals, but also accepts every",
            "# other certificate of that issuer. Keep one of the two, and add a backup: the",
            "# server's next key, or the key of another issuer.",
        ]
        if proposed.count == 1 {
            lines.append("# This is the only pin: add a backup before you use it.")
        }
        if case .refused = verdict {
            lines += [
                "# The chain was refused, and would still be refused with these pins. If it should",
                "# be trusted, list its root in `anchors` of the pinset.",
            ]
        }
        if let host {
            lines += [
                "hosts:", "  - match: [\"\(host)\"]", "    upgrade: https",
                "    pinsets: [\(name)]",
            ]
            if !roots.isEmpty {
                let list = roots.map(JSONText.quoted).joined(separator: ", ")
                lines.append("    tls: { roots: [\(list)] }")
            }
        }
        lines += ["pinsets:", "  \(name):", "    mode: publicKey", "    pins:"]
        for item in proposed {
            let what = item.subject ?? "a public key"
            lines.append("      - \(item.key.keyPinText)  # \(Self.kind(item)): \(what)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    // MARK: For programs

    /// The report as one JSON object on one line.
    package var json: String {
        var object = JSONObject()
        object.add("source", source)
        object.add("connection", connection)
        switch verdict {
        case .trusted: object.add("verdict", "pass")
        case .refused(let token, let detail):
            object.add("verdict", "fail")
            object.add("reason", token)
            object.add("detail", detail)
        case nil: object.add(raw: "verdict", "null")
        }
        object.add("chain", items.map(Self.json))
        object.add("pinset", name)
        object.add("pins", proposed.map(\.key.keyPinText))
        return object.text
    }

    private static func json(_ item: PinnedItem) -> JSONObject {
        var object = JSONObject()
        object.add("kind", kind(item))
        object.add("subject", item.subject)
        object.add("pin", item.key.keyPinText)
        object.add("curl", item.curlPin)
        object.add("fingerprint", item.fingerprint?.fingerprintText)
        if let inspection = item.inspection {
            object.add("issuer", inspection.issuer)
            object.add("names", inspection.names)
            object.add("notBefore", CivilDate.text(secondsSince1970: inspection.notBefore))
            object.add("notAfter", CivilDate.text(secondsSince1970: inspection.notAfter))
            object.add("isAuthority", inspection.isAuthority)
        }
        return object
    }
}

extension PinnedItem {
    /// The certificates of a server: first the valid chain to a trust anchor, if there is one,
    /// then the other certificates that were sent.
    package static func chain(
        _ sent: [[UInt8]], _ roots: TrustRoots
    ) throws(CertificateError) -> [PinnedItem] {
        var unlisted: [PinnedItem] = []
        for der in sent { unlisted.append(try PinnedItem(certificate: der)) }
        guard let presented = try? PresentedChain(der: sent),
            let verifier = try? TrustVerifier(PinningPolicy(), roots: roots),
            let verified = verifier.verifiedChain(of: presented)
        else { return unlisted }
        var items: [PinnedItem] = []
        for identity in verified.certificates {
            if let index = unlisted.firstIndex(where: { $0.fingerprint == identity.fingerprint }) {
                items.append(unlisted.remove(at: index))
            } else {
                items.append(PinnedItem(anchor: identity))
            }
        }
        return items + unlisted
    }
}
