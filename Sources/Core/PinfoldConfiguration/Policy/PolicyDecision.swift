import HTTPCore

/// What becomes of a policy that has arrived.
package enum PolicyDecision: Sendable, Equatable {
    /// It is newer than the last one that was verified: it is read, and put in force if that
    /// succeeds.
    case take(signedBy: [PolicyPublicKey])
    /// It is the last one that was verified. Lines of signatures may differ, which anybody can
    /// write, or leave out.
    case unchanged
    /// It is the last one that was verified, and one of the keys has signed it that had not.
    case signedAnew(by: [PolicyPublicKey])
    case refuse(PolicyRefusalReason)

    /// - Parameters:
    ///   - bytes: what was received.
    ///   - known: the last one that was verified and taken, in whichever process; `nil` if none
    ///     has been.
    ///   - now: seconds since 1970.
    package static func of(
        _ bytes: [UInt8], after known: PolicyEnvelope?, keys: [PolicyPublicKey], now: Int64
    ) -> PolicyDecision {
        let envelope: PolicyEnvelope
        do throws(PolicyFormatError) { envelope = try PolicyEnvelope(bytes) } catch {
            return .refuse(.format(error))
        }
        let signers: [PolicyPublicKey]
        do throws(PolicySignatureError) { signers = try envelope.signers(among: keys) } catch {
            return .refuse(.signature(error))
        }
        if let known {
            guard envelope.serial >= known.serial else {
                return .refuse(.older(serial: envelope.serial, known: known.serial))
            }
            if envelope.serial == known.serial {
                guard envelope.signed == known.signed else {
                    return .refuse(.sameSerial(envelope.serial))
                }
                let former = (try? known.signers(among: keys)) ?? []
                return signers.allSatisfy(former.contains) ? .unchanged : .signedAnew(by: signers)
            }
        }
        guard now < envelope.expires else {
            return .refuse(.expired(serial: envelope.serial, at: envelope.expires))
        }
        return .take(signedBy: signers)
    }
}

/// Why a policy is not taken.
package enum PolicyRefusalReason: Sendable, Equatable {
    case format(PolicyFormatError)
    case signature(PolicySignatureError)
    /// Its serial is lower than that of the last one.
    case older(serial: Int64, known: Int64)
    /// It has the serial of the last one, and is another.
    case sameSerial(Int64)
    /// It had expired before it arrived.
    case expired(serial: Int64, at: Int64)
    /// It is not a configuration, or not one that narrows the local one.
    case content(String)
    /// The gateway could not put it in force.
    case unusable(String)

    /// The label in metrics.
    package var token: String {
        switch self {
        case .format: "format"
        case .signature: "signature"
        case .older: "older"
        case .sameSerial: "same_serial"
        case .expired: "expired"
        case .content: "content"
        case .unusable: "unusable"
        }
    }

    /// All tokens.
    package static let tokens = [
        "format", "signature", "older", "same_serial", "expired", "content", "unusable",
    ]

    /// One sentence without a full stop.
    package var text: String {
        switch self {
        case .format(let error):
            let place = error.line.map { "line \($0)" } ?? "the policy"
            return "\(place) \(error.problem); expected \(error.expected)"
        case .signature(let error): return error.text
        case .older(let serial, let known):
            return "its serial \(serial) is lower than \(known), which was verified before"
        case .sameSerial(let serial):
            return "it has the serial \(serial) of the policy that was verified before, and is "
                + "another; expected a higher one"
        case .expired(let serial, let time):
            return "serial \(serial) expired at \(CivilDate.text(secondsSince1970: time))"
        case .content(let text), .unusable(let text): return text
        }
    }
}

/// Why a policy's signatures do not do.
package enum PolicySignatureError: Error, Sendable, Equatable {
    /// None is by a key that is configured. The keys that it names.
    case unknown([PolicyPublicKey])
    /// The one by this key, which is configured, is not of this content.
    case wrong(PolicyPublicKey)

    package var text: String {
        switch self {
        case .unknown(let keys):
            let names = keys.map(\.description).joined(separator: ", ")
            return "it has no signature by a key of policy.publicKeys, only by \(names)"
        case .wrong(let key): return "the signature by \(key) is not of this content"
        }
    }
}

extension PolicyEnvelope {
    /// The keys whose signatures it has, of those that are configured. What others have signed
    /// counts for nothing; but a signature that names a configured key must be good: nobody makes
    /// one that is not.
    package func signers(
        among keys: [PolicyPublicKey]
    ) throws(PolicySignatureError) -> [PolicyPublicKey] {
        let input = Self.input(signed)
        var found: [PolicyPublicKey] = []
        for signature in signatures where keys.contains(signature.key) {
            guard signature.key.verifies(signature.bytes, of: input) else {
                throw .wrong(signature.key)
            }
            found.append(signature.key)
        }
        guard !found.isEmpty else { throw .unknown(signatures.map(\.key)) }
        return found
    }
}
