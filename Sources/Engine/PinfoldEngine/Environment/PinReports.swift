import Locking
import Trust

/// The servers that report-only pinsets would have refused, so that each is logged once in a while
/// and not at every handshake; all of them are counted.
///
/// Lock: one mutex, held for one dictionary operation per handshake that is reported.
package final class PinReports: Sendable {
    /// The subject of a log line.
    package struct Subject: Hashable, Sendable {
        /// The pinset in force: after a reload that changes it, this is a different subject.
        package var pinset: Pinset
        package var host: String
        package var port: UInt16

        package init(pinset: Pinset, host: String, port: UInt16) {
            self.pinset = pinset
            self.host = host
            self.port = port
        }

        /// Without the pins: the name is sufficient for a lookup at each handshake.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(pinset.name)
            hasher.combine(host)
            hasher.combine(port)
        }

        /// Whether the other subject's pinset is an earlier or later version of the same name.
        fileprivate func isOtherVersion(of other: Subject) -> Bool {
            pinset.name == other.pinset.name && pinset != other.pinset
        }
    }

    private struct Log {
        /// When it was last logged, in seconds.
        var at: Int64
        /// How often it has happened since.
        var repeats: UInt64
    }

    /// The time between two lines about one subject, in seconds.
    package static let periodSeconds: Int64 = 3600
    /// How many subjects are tracked at a time; further ones are not logged, so that the number of
    /// lines is bounded, too. Subjects of a pinset's version before a reload make room for the
    /// current one.
    package static let capacity = 1024

    private let logged = Locked<[Subject: Log]>([:])

    package init() {}

    /// Records that a server was accepted.
    ///
    /// - Parameter now: seconds of a clock that never goes back.
    /// - Returns: how often it has happened without being logged since the last time; `nil` if it
    ///   should not be logged now.
    package func note(_ subject: Subject, now: Int64) -> UInt64? {
        logged.withLock { logged in
            if let last = logged[subject], now - last.at < Self.periodSeconds {
                logged[subject]?.repeats += 1
                return nil
            }
            let repeats = logged[subject]?.repeats ?? 0
            if logged[subject] == nil, logged.count >= Self.capacity {
                logged = logged.filter {
                    now - $0.value.at < Self.periodSeconds && !$0.key.isOtherVersion(of: subject)
                }
                guard logged.count < Self.capacity else { return nil }
            }
            logged[subject] = Log(at: now, repeats: 0)
            return repeats
        }
    }
}
