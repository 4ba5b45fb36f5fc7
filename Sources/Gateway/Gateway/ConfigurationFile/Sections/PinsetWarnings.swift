import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// What is valid about a pinset and yet stops its hosts some day, or does nothing.
extension SnapshotReader {
    /// Seconds before a pinset expires from which on it is warned of: 30 days.
    private static let noticeSeconds: Int64 = 30 * 86_400

    /// - Parameter section: the pinset's keys, all of them right by themselves.
    func warn(of entry: PinsetEntry, _ section: Section) {
        warnOfPins(entry, section)
        warnOfExpiry(entry.pinset, section)
        warnOfReporting(entry, section)
        let pinset = entry.pinset
        if pinset.mode == .none, !pinset.isEnforced {
            section["enforce"]?.warn("has no effect: there are no pins to report with mode: none")
        }
    }

    private func warnOfPins(_ entry: PinsetEntry, _ section: Section) {
        let pins = Set(entry.pinset.pins)
        guard entry.pinset.mode != .none, let field = section["pins"] else { return }
        if pins.count == 1 {
            field.warn(
                "has a single pin: when the server's key changes, no connection is possible until "
                    + "this file has; add a backup, the pin of its next key or of its issuer")
        }
        if pins.allSatisfy(\.isCertificateOfServer) {
            let consequence =
                entry.pinset.mode == .certificate
                ? "each renewal ends them" : "a renewal with a new key ends them"
            field.warn(
                "are the certificates of servers only: \(consequence); pin an issuer as well")
        }
    }

    private func warnOfExpiry(_ pinset: Pinset, _ section: Section) {
        guard let expires = pinset.expires, let field = section["expires"] else {
            section["afterExpiry"]?.warn("has no effect without expires")
            return
        }
        if let after = section["afterExpiry"] {
            if !pinset.isEnforced {
                after.warn("has no effect beside enforce: false")
            } else if pinset.mode == .none, pinset.afterExpiry == .report {
                after.warn("has no effect: there are no pins to report with mode: none")
            }
        }
        let now = validation.environment.now
        guard expires <= now + Self.noticeSeconds else { return }
        let time = CivilDate.text(secondsSince1970: expires)
        let consequence: String
        if !pinset.isEnforced {
            consequence = "its pins are only reported in any case (enforce: false)"
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
    /// Whether it is a certificate given whole that can be no issuer's.
    var isCertificateOfServer: Bool {
        guard case .certificate(let der) = self else { return false }
        // What cannot be read is an error elsewhere.
        return (try? CertificateInspection(certificate: der))?.isAuthority == false
    }
}

extension SnapshotReader {
    /// A date, or a date and time (RFC 3339), in seconds since 1970.
    func time(_ field: Field) -> Int64? {
        field.parsed(
            expected: "a date, 2027-06-01 (its first second in UTC), or a time, "
                + "2027-06-01T12:00:00Z"
        ) { CivilDate.secondsSince1970(rfc3339: $0.utf8) }
    }

    /// A time as it is printed.
    static func text(time: Int64) -> String { CivilDate.text(secondsSince1970: time) }
}
