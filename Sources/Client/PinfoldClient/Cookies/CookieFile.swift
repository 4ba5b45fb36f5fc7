import CLinux
import HTTPCore

/// A cookie jar on disk, in the Netscape format that curl, wget and browser extensions read and
/// write (https://curl.se/docs/http-cookies.html): one line for each cookie, with tab-separated
/// columns.
///
///     # Netscape HTTP Cookie File
///     #pinfold created=1700000000 accessed=1700000100 sameSite=lax
///     #HttpOnly_.example.com  TRUE  /  TRUE  1800000000  name  value
///
/// Attributes for which the format has no column are written in a comment before the line, which
/// other programs ignore. Session cookies have the expiry time 0; as in curl, they are read, and
/// are written on request. Names and values need not be valid UTF-8.
package enum CookieFile {
    /// The maximum size of a file that is read, in bytes.
    package static let maximumBytes = 32 << 20

    private static let header = "# Netscape HTTP Cookie File"
    private static let note = "#pinfold "
    private static let httpOnly = "#HttpOnly_"
    private static let tab: UInt8 = 0x09

    /// Reads the jar in a file. Expired cookies are left out.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    /// - Returns: The jar, or `nil` if the file does not exist or is a character device such as
    ///   `/dev/null`.
    /// - Throws: ``CookieFileError`` if the file cannot be read or a line is malformed.
    package static func read(
        _ path: String, limits: CookieJar.Limits = CookieJar.Limits(), at now: Int64
    ) throws(CookieFileError) -> CookieJar? {
        guard let bytes = try DiskFile.contents(of: path, most: maximumBytes) else { return nil }
        return try jar(bytes, path: path, limits: limits, at: now)
    }

    /// Writes a jar's cookies to a file that only its owner can read (mode 0600).
    ///
    /// The file is replaced atomically: even after a power failure it has either its previous
    /// content or the new one. If the path is a symbolic link, the link stays and the file that it
    /// points to is replaced. A character device such as `/dev/null` is written to.
    ///
    /// - Parameters:
    ///   - now: The current time in seconds since 1970.
    ///   - includesSession: Whether session cookies are written, too.
    package static func write(
        _ jar: CookieJar, to path: String, at now: Int64, includesSession: Bool = false
    ) throws(CookieFileError) {
        let bytes = bytes(of: jar, at: now, includesSession: includesSession)
        try DiskFile.replace(path, by: bytes, mode: 0o600)
    }

    package static func bytes(
        of jar: CookieJar, at now: Int64, includesSession: Bool = false
    ) -> [UInt8] {
        var bytes = Array("\(header)\n".utf8)
        for (cookie, accessed) in jar.entries {
            guard isWritable(cookie), !cookie.isExpired(at: now),
                let expires = cookie.expires ?? (includesSession ? 0 : nil)
            else { continue }
            var text = "\(note)created=\(cookie.created) accessed=\(accessed)"
            text += " sameSite=\(cookie.sameSite.rawValue)\n"
            let domain = "\(cookie.isHTTPOnly ? httpOnly : "")\(cookie.isHostOnly ? "" : ".")"
            let columns = [
                domain + cookie.domain, cookie.isHostOnly ? "FALSE" : "TRUE", cookie.path,
                cookie.isSecureOnly ? "TRUE" : "FALSE", "\(expires)",
            ]
            text += columns.joined(separator: "\t")
            bytes += text.utf8
            bytes += [tab] + cookie.nameBytes + [tab] + cookie.valueBytes + [0x0A]
        }
        return bytes
    }

    /// Whether a cookie can be written as one line. Cookies from responses always can; a cookie
    /// that the caller made may contain tabs or line breaks.
    private static func isWritable(_ cookie: Cookie) -> Bool {
        [cookie.nameBytes, cookie.valueBytes, Array(cookie.domain.utf8), Array(cookie.path.utf8)]
            .joined().allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    package static func jar(
        _ bytes: [UInt8], path: String, limits: CookieJar.Limits, at now: Int64
    ) throws(CookieFileError) -> CookieJar {
        var jar = CookieJar(limits: limits)
        var extras = Extras(created: now, accessed: now)
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let bare = line.last == 0x0D ? line.dropLast() : line
            // Bytes are compared, not characters: what follows one may combine with it.
            if bare.starts(with: note.utf8) {
                let text = String(decoding: bare.dropFirst(note.utf8.count), as: UTF8.self)
                extras = Extras(text, now: now)
                continue
            }
            let isComment = bare.first == UInt8(ascii: "#") && !bare.starts(with: httpOnly.utf8)
            guard !bare.isEmpty, !isComment else { continue }
            do throws(LineError) {
                let cookie = try cookie(bare, extras)
                if !cookie.isExpired(at: now) {
                    jar.put(cookie, accessed: extras.accessed, at: now)
                }
            } catch {
                throw CookieFileError(path: path, reason: .line(index + 1, error.text))
            }
            extras = Extras(created: now, accessed: now)
        }
        return jar
    }

    /// What is wrong with a line.
    private struct LineError: Error { var text: String }

    private static func cookie(
        _ line: ArraySlice<UInt8>, _ extras: Extras
    ) throws(LineError) -> Cookie {
        let isHTTPOnly = line.starts(with: httpOnly.utf8)
        let parts = line.dropFirst(isHTTPOnly ? httpOnly.utf8.count : 0)
            .split(separator: tab, omittingEmptySubsequences: false)
        let columns = parts.map { String(decoding: $0, as: UTF8.self) }
        // curl omits the last column if the value is empty.
        guard (6...7).contains(columns.count) else {
            throw LineError(text: "\(columns.count) tab-separated columns; expected 7")
        }
        let domain = parts[0].first == UInt8(ascii: ".") ? parts[0].dropFirst() : parts[0]
        guard !domain.isEmpty else { throw LineError(text: "the domain is empty") }
        guard parts[2].first == UInt8(ascii: "/") else {
            throw LineError(text: "the path does not begin with /")
        }
        guard let end = Int64(columns[4]), end >= 0 else {
            throw LineError(text: "the expiry time is not a number of seconds")
        }
        let includesBelow = try flag(columns[1], "second")
        return Cookie(
            nameBytes: Array(parts[5]), valueBytes: parts.count == 7 ? Array(parts[6]) : [],
            domain: String(decoding: domain, as: UTF8.self), isHostOnly: !includesBelow,
            path: columns[2], isSecureOnly: try flag(columns[3], "fourth"),
            isHTTPOnly: isHTTPOnly, sameSite: extras.sameSite, expires: end == 0 ? nil : end,
            created: extras.created)
    }

    private static func flag(_ text: String, _ column: String) throws(LineError) -> Bool {
        switch text.lowercasedASCII {
        case "true": true
        case "false": false
        default: throw LineError(text: "the \(column) column is neither TRUE nor FALSE")
        }
    }

    /// The attributes in the comment before a cookie's line. An attribute that is missing or cannot
    /// be parsed gets the value that it has for files written by other programs.
    private struct Extras {
        var created: Int64
        var accessed: Int64
        var sameSite = Cookie.SameSite.unspecified

        init(created: Int64, accessed: Int64) {
            (self.created, self.accessed) = (created, accessed)
        }

        init(_ text: String, now: Int64) {
            self.init(created: now, accessed: now)
            for word in text.split(separator: " ") {
                let parts = word.split(separator: "=", maxSplits: 1)
                guard parts.count == 2 else { continue }
                switch parts[0] {
                case "created": created = Int64(parts[1]) ?? now
                case "accessed": accessed = Int64(parts[1]) ?? now
                case "sameSite": sameSite = Cookie.SameSite(rawValue: String(parts[1])) ?? sameSite
                default: break
                }
            }
        }
    }
}

/// An error in reading or writing a cookie file.
public struct CookieFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong with the file.
    public enum Reason: Hashable, Sendable {
        /// A malformed line: its number, counted from 1, and what is wrong with it.
        case line(Int, String)
        /// The file has more than `CookieFile`.
        case tooLarge
        /// A system call failed with this error number.
        case system(Int32)
        /// The path is not a regular file but what this text says.
        case kind(String)
    }

    /// The file's path.
    public var path: String
    /// What is wrong with the file.
    public var reason: Reason

    /// Creates an error for the file at a path.
    public init(path: String, reason: Reason) { (self.path, self.reason) = (path, reason) }

    /// `PATH:LINE: what is wrong`, ready to be shown to the user.
    public var description: String {
        switch reason {
        case .line(let line, let text): "\(path):\(line): \(text)"
        case .tooLarge: "\(path): more than \(CookieFile.maximumBytes) bytes"
        case .system(let code): "\(path): \(String(cString: strerror(code)))"
        case .kind(let text): "\(path): \(text); expected a regular file"
        }
    }
}
