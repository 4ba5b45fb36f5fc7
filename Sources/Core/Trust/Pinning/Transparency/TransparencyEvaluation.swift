/// The Certificate Transparency evidence that a server presented.
package struct TransparencyEvidence: Sendable {
    /// Lists of timestamps as received, with their sources.
    package var lists: [(source: TimestampSource, bytes: [UInt8])]
    /// The DER of the server's certificate.
    package var certificate: [UInt8]
    /// The TBSCertificate without the timestamps in it.
    package var precertificate: [UInt8]
    /// SHA-256 of the key of the issuer that signed the certificate; `nil` if it is not known.
    package var issuerKey: SHA256Digest?
    /// When the certificate expires, in seconds since 1970.
    package var notAfter: Int64

    package init(
        lists: [(source: TimestampSource, bytes: [UInt8])], certificate: [UInt8],
        precertificate: [UInt8], issuerKey: SHA256Digest?, notAfter: Int64
    ) {
        self.lists = lists
        self.certificate = certificate
        self.precertificate = precertificate
        self.issuerKey = issuerKey
        self.notAfter = notAfter
    }

    /// What the timestamps of a source sign; `nil` if the issuer is not known.
    func entry(_ source: TimestampSource) -> SignedTimestamp.Entry? {
        switch source {
        case .certificate:
            issuerKey.map { .precertificate(issuerKey: $0, signed: precertificate) }
        case .handshake, .status: .certificate(certificate)
        }
    }
}

extension TransparencyPolicy {
    /// The maximum number of signatures that are checked; a server may send a thousand.
    package static let maximumSignatures = 32
    /// The clock skew that is tolerated, in seconds: the same as OpenSSL's.
    package static let clockSkewSeconds: Int64 = 300

    /// Counts the logs with valid timestamps. At least one of them must not be retired: nobody
    /// guards the keys of retired logs, and whoever has one can choose a timestamp's time.
    ///
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - verify: whether a log's key has signed content.
    /// - Returns: `nil` if there are enough.
    package func failure(
        of evidence: TransparencyEvidence, now: Int64,
        verify: (TransparencyLog, SignedTimestamp, [UInt8]) -> Bool
    ) -> TransparencyError? {
        var counted: Set<SHA256Digest> = []
        var areRetired = true
        var checked = 0
        var failure = TransparencyError(minimum: minimum, valid: 0, rejected: [])
        for (source, bytes) in evidence.lists {
            let list: [Result<SignedTimestamp, TimestampRejectionReason>]
            do throws(TimestampRejectionReason) {
                list = try SignedTimestamp.list(bytes[...])
            } catch {
                failure.rejected.append(.init(source, error))
                continue
            }
            for one in list {
                do throws(TimestampRejectionReason) {
                    let timestamp = try one.get()
                    let log = try log(of: timestamp, from: source, evidence, now: now)
                    if counted.contains(log.id) { throw .sameLog(log: log.name) }
                    guard let entry = evidence.entry(source) else {
                        throw .noIssuer(log: log.name)
                    }
                    guard checked < Self.maximumSignatures else {
                        failure.ignored += 1
                        continue
                    }
                    checked += 1
                    guard let content = timestamp.signedContent(of: entry),
                        verify(log, timestamp, content)
                    else { throw .wrongSignature(log: log.name) }
                    counted.insert(log.id)
                    if log.state != .retired { areRetired = false }
                    if counted.count >= minimum, !areRetired { return nil }
                } catch {
                    failure.rejected.append(.init(source, error))
                }
            }
        }
        failure.valid = counted.count
        return failure
    }

    /// The log that a timestamp names, if the timestamp counts provided that the log signed it.
    private func log(
        of timestamp: SignedTimestamp, from source: TimestampSource,
        _ evidence: TransparencyEvidence, now: Int64
    ) throws(TimestampRejectionReason) -> TransparencyLog {
        guard let log = log(timestamp.log) else { throw .unknownLog(timestamp.log) }
        let seconds = Int64(timestamp.milliseconds / 1000)
        guard let state = log.state, state.mayCount else {
            throw .state(log.state, log: log.name)
        }
        guard log.hasKnownKey else { throw .unknownKey(log: log.name) }
        if state == .retired {
            guard source == .certificate else { throw .besideCertificate(log: log.name) }
            guard seconds < log.stateSince else {
                throw .afterRetirement(log: log.name, at: log.stateSince)
            }
        }
        guard log.expiries?.contains(evidence.notAfter) ?? true else {
            throw .otherExpiry(log: log.name)
        }
        guard seconds <= now + Self.clockSkewSeconds else {
            throw .inFuture(log: log.name, at: seconds)
        }
        guard timestamp.hasAllowedAlgorithm else { throw .unknownSignature(log: log.name) }
        return log
    }
}
