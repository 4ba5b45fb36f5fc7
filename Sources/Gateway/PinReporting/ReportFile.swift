import Files
import HTTPCore
import PinfoldTLS
import Trust

/// The file of a waiting report: a line that identifies the format, the SHA-256 of the rest, the
/// name of its pinset, and the JSON.
enum ReportFile {
    private static let header = "pinfold pin report 1\n"
    /// The suffix of such files' names.
    static let suffix = ".report"
    /// The maximum size of a file that is read.
    static let maximumBytes = 1 << 20
    /// The maximum size of a report's JSON: the lines before it need space, too.
    static let maximumBody = maximumBytes - (8 << 10)

    /// The contents of a file.
    static func bytes(pinset: String, body: [UInt8]) -> [UInt8]? {
        let rest = Array("\(pinset)\n".utf8) + body
        guard let digest = SHA256Digest(hashing: rest.span) else { return nil }
        return Array("\(header)\(digest.fingerprintText)\n".utf8) + rest
    }

    /// The pinset and body in a file, or `nil` if it is damaged or something else.
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

    /// The name of a report's file; names sort in the order in which the reports were made.
    ///
    /// - Parameters:
    ///   - created: milliseconds since 1970.
    ///   - number: distinguishes reports made at the same time.
    static func name(created: Int64, number: UInt32) -> String {
        String(hexadecimal: UInt64(bitPattern: created), digits: 16) + "-"
            + String(hexadecimal: number, digits: 8) + suffix
    }

    /// The final name of an unfinished file, or `nil` if it is not a report's.
    static func finishedName(of name: String) -> String? {
        let report = name.prefix(nameLength)
        guard name.hasSuffix(UnfinishedFile.suffix), created(name: String(report)) != nil
        else { return nil }
        return String(report)
    }

    /// The length of a name.
    private static let nameLength = 16 + 1 + 8 + suffix.count

    /// When the report in a file was made, in milliseconds since 1970, or `nil` if the name is not
    /// a report's.
    static func created(name: String) -> Int64? {
        guard name.hasSuffix(suffix) else { return nil }
        let parts = name.dropLast(suffix.count).split(
            separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].count == 16, parts[1].count == 8,
            UInt32(parts[1], radix: 16) != nil
        else { return nil }
        return Int64(parts[0], radix: 16)
    }
}
