import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// Warnings of valid settings of a pinset that will block its hosts in the future, or that have no
/// effect.
extension SnapshotReader {
    /// How long before a pinset expires a warning is given: 30 days, in seconds.
    private static let noticeSeconds: Int64 = 30 * 86_400

    /// Warns of a pinset's settings.
    ///
    /// - Parameter section: The pinset's keys, each valid by itself.
    func warn(of entry: PinsetEntry, _ section: Section) {
        warnOfPins(entry, section)
        warnOfExpiry(entry.pinset, section)
        warnOfReporting(entry, section)
        let pinset = entry.pinset
        if pinset.mode == .none, !pinset.isEnforced {
            section["enforce"]?.warn("has no effect: mode: none has no pins to report")
        }
    }

    private func warnOfPins(_ entry: PinsetEntry, _ section: Section) {
        let pins = Set(entry.pinset.pins)
        guard entry.pinset.mode != .none, let field = section["pins"] else { return }
        if pins.count == 1 {
            field.warn(
                "has a single pin: when the server's key changes, connections fail until this "
                    + "file is updated; add a backup pin, of its next key or of its issuer")
        }
        if pins.allSatisfy(\.isCertificateOfServer) {
            let consequence =
                entry.pinset.mode == .certificate
                ? "no pin will match after a renewal"
                : "no pin will match after a renewal with a new key"
            field.warn(
                "has only server certificates: \(consequence); pin an issuer as well")
        }
    }

    private func warnOfExpiry(_ pinset: Pinset, _ section: Section) {
        guard let expires = pinset.expires, let field = section["expires"] else {
            section["afterExpiry"]?.warn("has no effect without expires")
            return
        }
        if let after = section["afterExpiry"] {
            if !pinset.isEnforced {
                after.warn("has no effect with enforce: false")
            } else if pinset.mode == .none, pinset.afterExpiry == .report {
                after.warn("has no effect: mode: none has no pins to report")
            }
        }
        let now = validation.environment.now
        guard expires <= now + Self.noticeSeconds else { return }
        let time = CivilDate.text(secondsSince1970: expires)
        let consequence: String
        if !pinset.isEnforced {
            consequence = "its pins are only reported anyway (enforce: false)"
        } else if pinset.afterExpiry == .report {
            consequence = "its pins are only reported from then on (afterExpiry: report)"
        } else {
            consequence = "its hosts are refused from then on"
        }
        let when = expires <= now ? "expired at" : "expires soon, at"
        field.warn("\(when) \(time): \(consequence)")
    }
}

extension Pin {
    /// Whether it is a whole certificate that is not a CA certificate.
    var isCertificateOfServer: Bool {
        guard case .certificate(let der) = self else { return false }
        // A certificate that cannot be read is reported elsewhere.
        return (try? CertificateInspection(certificate: der))?.isAuthority == false
    }
}

extension SnapshotReader {
    /// A date, or a date and time (RFC 3339), in seconds since 1970.
    func time(_ field: Field) -> Int64? {
        field.parsed(
            expected: "a date such as 2027-06-01 (its first second in UTC), or a time such as "
                + "2027-06-01T12:00:00Z"
        ) { CivilDate.secondsSince1970(rfc3339: $0.utf8) }
    }

    /// A time as printed.
    static func text(time: Int64) -> String { CivilDate.text(secondsSince1970: time) }
}
