import DurableFiles
import PinfoldTLS
import Trust

/// A report as it waits in a file: a line that says what it is, the SHA-256 of the rest, the name
/// of its pinset, and the JSON.
enum ReportFile {
    private static let header = "pinfold pin report 1\n"
    /// How the names of such files end.
    static let suffix = ".report"
    /// Bytes of the longest file that is read.
    static let maximumBytes = 1 << 20
    /// Bytes of the longest JSON of a report: the lines before it have room, too.
    static let maximumBody = maximumBytes - (8 << 10)

    /// What a file has.
    static func bytes(pinset: String, body: [UInt8]) -> [UInt8]? {
        let rest = Array("\(pinset)\n".utf8) + body
        guard let digest = SHA256Digest(hashing: rest.span) else { return nil }
        return Array("\(header)\(digest.fingerprintText)\n".utf8) + rest
    }

    /// The pinset and the body of a file; nil: it is damaged, or something else.
    static func read(_ bytes: [UInt8]) -> (pinset: String, body: [UInt8])? {
        guard bytes.starts(with: header.utf8) else { return nil }
        let parts = bytes.dropFirst(header.utf8.count).split(
            separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let rest = Array(bytes[parts[1].startIndex...])
        guard let digest = SHA256Digest(hashing: rest.span),
            parts[0].elementsEqual(digest.fingerprintText.utf8)
        else { return nil }
        return (String(decoding: parts[1], as: UTF8.self), Array(parts[2]))
    }

    /// The name of a report's file, by which files are in the order in which they were made.
    ///
    /// - Parameters:
    ///   - created: milliseconds since 1970.
    ///   - number: tells reports of one moment apart.
    static func name(created: Int64, number: UInt32) -> String {
        hexadecimal(UInt64(bitPattern: created), digits: 16) + "-"
            + hexadecimal(UInt64(number), digits: 8) + suffix
    }

    /// The name that a file was to get which was not finished; nil: it was to be no report.
    static func finishedName(of name: String) -> String? {
        let report = name.prefix(nameLength)
        guard name.hasSuffix(UnfinishedFile.suffix), created(name: String(report)) != nil
        else { return nil }
        return String(report)
    }

    /// Characters of a name.
    private static let nameLength = 16 + 1 + 8 + suffix.count

    /// When the report of a file was made, in milliseconds since 1970; nil: its name is no
    /// report's.
    static func created(name: String) -> Int64? {
        guard name.hasSuffix(suffix) else { return nil }
        let parts = name.dropLast(suffix.count).split(
            separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].count == 16, parts[1].count == 8,
            UInt32(parts[1], radix: 16) != nil
        else { return nil }
        return Int64(parts[0], radix: 16)
    }

    private static func hexadecimal(_ number: UInt64, digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
