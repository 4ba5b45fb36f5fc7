/// What a server has shown of Certificate Transparency.
package struct TransparencyEvidence: Sendable {
    /// Lists of timestamps as they came, from wherever.
    package var lists: [(source: TimestampSource, bytes: [UInt8])]
    /// DER of the server's certificate.
    package var certificate: [UInt8]
    /// The TBSCertificate without the timestamps in it.
    package var precertificate: [UInt8]
    /// SHA-256 of the keys that may be the issuer's: each has signed the certificate.
    package var issuerKeys: [SHA256Digest]
    /// When the certificate expires, in seconds since 1970.
    package var notAfter: Int64

    package init(
        lists: [(source: TimestampSource, bytes: [UInt8])], certificate: [UInt8],
        precertificate: [UInt8], issuerKeys: [SHA256Digest], notAfter: Int64
    ) {
        self.lists = lists
        self.certificate = certificate
        self.precertificate = precertificate
        self.issuerKeys = issuerKeys
        self.notAfter = notAfter
    }

    /// What the timestamps of a source are signed over.
    func entries(_ source: TimestampSource) -> [SignedTimestamp.Entry] {
        switch source {
        case .certificate:
            issuerKeys.map { .precertificate(issuerKey: $0, signed: precertificate) }
        case .handshake, .status: [.certificate(certificate)]
        }
    }
}

extension TransparencyPolicy {
    /// Timestamps that are looked at; a server may send a thousand, and each costs a signature.
    package static let timestampsAtMost = 32
    /// How far clocks may be apart, in seconds: as OpenSSL has it.
    package static let clockSkewSeconds: Int64 = 300

    /// Counts the logs whose timestamps are valid.
    ///
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - verify: whether a log's key has signed content.
    /// - Returns: nil where there are enough.
    package func failure(
        of evidence: TransparencyEvidence, now: Int64,
        verify: (TransparencyLog, SignedTimestamp, [UInt8]) -> Bool
    ) -> TransparencyFailure? {
        var counted: Set<SHA256Digest> = []
        var failure = TransparencyFailure(minimum: minimum, valid: 0, rejected: [])
        var looked = 0
        for (source, bytes) in evidence.lists {
            let list: [Result<SignedTimestamp, SignedTimestamp.Problem>]
            do throws(SignedTimestamp.Problem) {
                list = try SignedTimestamp.list(bytes[...])
            } catch {
                failure.rejected.append(.init(source, .malformedList))
                continue
            }
            for one in list {
                if counted.count >= minimum { return nil }
                guard looked < Self.timestampsAtMost else {
                    failure.ignored += 1
                    continue
                }
                looked += 1
                do throws(SignedTimestamp.Problem) {
                    let timestamp = try one.get()
                    if let why = rejection(
                        of: timestamp, from: source, evidence, counted, now: now, verify)
                    {
                        failure.rejected.append(.init(source, why))
                    } else {
                        counted.insert(timestamp.log)
                    }
                } catch {
                    switch error {
                    case .malformed: failure.rejected.append(.init(source, .malformed))
                    case .unknownVersion(let version):
                        failure.rejected.append(.init(source, .unknownVersion(version)))
                    }
                }
            }
        }
        failure.valid = counted.count
        return counted.count >= minimum ? nil : failure
    }

    /// Why a timestamp does not count; nil: it does.
    private func rejection(
        of timestamp: SignedTimestamp, from source: TimestampSource,
        _ evidence: TransparencyEvidence, _ counted: Set<SHA256Digest>, now: Int64,
        _ verify: (TransparencyLog, SignedTimestamp, [UInt8]) -> Bool
    ) -> TimestampRejection? {
        guard let log = logs.first(where: { $0.id == timestamp.log }) else {
            return .unknownLog(timestamp.log)
        }
        let seconds = Int64(timestamp.milliseconds / 1000)
        switch log.state {
        case .qualified, .usable, .readonly: break
        case .retired:
            guard seconds < log.stateSince else {
                return .afterRetirement(log: log.name, at: log.stateSince)
            }
        case .pending, .rejected, nil: return .state(log.state, log: log.name)
        }
        guard log.expiries?.contains(evidence.notAfter) ?? true else {
            return .otherExpiry(log: log.name)
        }
        guard seconds <= now + Self.clockSkewSeconds else {
            return .inFuture(log: log.name, at: seconds)
        }
        if counted.contains(log.id) { return .sameLog(log: log.name) }
        guard timestamp.isSignedAsLogsDo else { return .unknownSignature(log: log.name) }
        let entries = evidence.entries(source)
        if entries.isEmpty { return .noIssuer(log: log.name) }
        let isSigned = entries.contains { entry in
            timestamp.signedContent(of: entry).map { verify(log, timestamp, $0) } ?? false
        }
        return isSigned ? nil : .wrongSignature(log: log.name)
    }
}
