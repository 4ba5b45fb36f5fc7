import HTTPCore

/// A signed policy as it is sent and kept: YAML between a header and its signatures, all of which
/// are comments to YAML.
///
///     # pinfold-policy: 1
///     # serial: 7
///     # expires: 2027-01-31T00:00:00Z
///     hosts: …
///     # signature: ed25519:KEY SIGNATURE
///
/// The three lines of the header are the first, in this order; the signatures, one or more, are the
/// last. What precedes the first signature is what all of them sign, byte by byte, with
/// ``domain`` before it: a signature of this key under anything else is none of a policy. A
/// signature names its key as configurations do, so that there is nothing to look up and nothing
/// that two keys could have in common.
///
/// There is one way of writing each line, and nothing may follow the last: of any file, at most one
/// reading exists.
package struct PolicyEnvelope: Sendable, Equatable {
    package struct Signature: Sendable, Equatable {
        package var key: PolicyPublicKey
        package var bytes: [UInt8]

        package init(key: PolicyPublicKey, bytes: [UInt8]) { (self.key, self.bytes) = (key, bytes) }
    }

    /// What is signed before the policy itself.
    package static let domain = Array("pinfold policy 1\0".utf8)
    /// The signed part: as much as any configuration file may have.
    package static let maximumSignedBytes = 1 << 20
    package static let maximumSignatures = 16
    /// The longest file.
    package static let maximumBytes = maximumSignedBytes + maximumSignatures * 160
    /// Serials are exact in every reader of JSON.
    package static let serials: ClosedRange<Int64> = 1...(1 << 53 - 1)
    /// In seconds since 1970: years with four digits.
    package static let expiries: ClosedRange<Int64> = 0...CivilDate.fourDigitYears.upperBound

    static let versionKey = "# pinfold-policy: "
    static let version = "1"
    static let serialKey = "# serial: "
    static let expiresKey = "# expires: "
    static let signatureKey = "# signature: "

    package let serial: Int64
    /// In seconds since 1970.
    package let expires: Int64
    /// The whole file.
    package let bytes: [UInt8]
    /// How many bytes of it are signed.
    package let signedCount: Int
    package let signatures: [Signature]

    /// What is signed of the file, which is YAML as a whole.
    package var signed: ArraySlice<UInt8> { bytes[..<signedCount] }

    /// Reads a file. Nothing is verified.
    package init(_ bytes: [UInt8]) throws(PolicyFormatError) {
        guard bytes.count <= Self.maximumBytes else {
            throw PolicyFormatError(
                "is longer than \(Self.maximumBytes) bytes", expected: "a signed policy")
        }
        let signed = Self.signedCount(of: bytes)
        guard signed <= Self.maximumSignedBytes else {
            throw PolicyFormatError(
                "has more than \(Self.maximumSignedBytes) bytes before its signatures",
                expected: "a signed policy")
        }
        (serial, expires) = try Self.header(of: bytes[..<signed])
        signatures = try Self.signatures(bytes, from: signed)
        signedCount = signed
        self.bytes = bytes
    }

    /// What a signature is made of.
    package static func input(_ signed: some Sequence<UInt8>) -> [UInt8] { domain + signed }
}

// MARK: Reading

extension PolicyEnvelope {
    /// Where the lines at the end begin that are all signatures.
    private static func signedCount(of bytes: [UInt8]) -> Int {
        let key = Array(signatureKey.utf8)
        var end = bytes.count
        // One more than there may be is found, and then refused.
        for _ in 0...maximumSignatures {
            guard end > 0 else { break }
            let before = bytes[..<(end - 1)].lastIndex(of: newline).map { $0 + 1 } ?? 0
            guard bytes[before..<end].starts(with: key) else { break }
            end = before
        }
        return end
    }

    private static let newline = UInt8(ascii: "\n")

    /// The serial and the expiry in the first three lines.
    private static func header(
        of signed: ArraySlice<UInt8>
    ) throws(PolicyFormatError) -> (Int64, Int64) {
        let lines = signed.split(
            separator: newline, maxSplits: 3, omittingEmptySubsequences: false)
        let form =
            "`\(versionKey)\(version)`, `\(serialKey)NUMBER` and `\(expiresKey)TIME`, a line each"
        func value(_ index: Int, _ key: String) throws(PolicyFormatError) -> Substring {
            // The last piece is the rest, or a line without its end.
            guard index < lines.count - 1, lines[index].starts(with: key.utf8),
                let text = String(validating: lines[index], as: UTF8.self)
            else {
                throw PolicyFormatError(
                    line: index + 1, "does not begin with `\(key)`", expected: form)
            }
            return Substring(text.utf8.dropFirst(key.utf8.count))
        }
        guard try value(0, versionKey) == version else {
            throw PolicyFormatError(
                line: 1, "is of another version of the format",
                expected: "`\(versionKey)\(version)`")
        }
        guard let serial = serial(try value(1, serialKey)) else {
            throw PolicyFormatError(
                line: 2, "has no serial", expected: "a whole number from 1 to 2^53 - 1")
        }
        guard let expires = time(try value(2, expiresKey)) else {
            throw PolicyFormatError(
                line: 3, "has no time", expected: "a time in UTC such as 2027-01-31T00:00:00Z")
        }
        var line = 0
        for content in signed.split(separator: newline, omittingEmptySubsequences: false) {
            line += 1
            guard !content.starts(with: signatureKey.utf8) else {
                throw PolicyFormatError(
                    line: line, "is a signature with something after it that is none",
                    expected: "signatures in the last lines only")
            }
        }
        return (serial, expires)
    }

    /// A serial in its only form: no sign, no zeros before it.
    package static func serial(_ text: some StringProtocol) -> Int64? {
        guard let number = Int64(text), serials.contains(number), "\(number)" == text else {
            return nil
        }
        return number
    }

    /// A time in its only form: UTC, whole seconds.
    package static func time(_ text: some StringProtocol) -> Int64? {
        guard let seconds = CivilDate.secondsSince1970(rfc3339: Array(text.utf8)),
            expiries.contains(seconds), CivilDate.text(secondsSince1970: seconds) == text
        else { return nil }
        return seconds
    }

    private static func signatures(
        _ bytes: [UInt8], from start: Int
    ) throws(PolicyFormatError) -> [Signature] {
        var line = bytes[..<start].count { $0 == newline }
        guard start < bytes.count else {
            throw PolicyFormatError(
                "has no signature", expected: "`\(signatureKey)…` as the last line")
        }
        guard bytes.last == newline else {
            throw PolicyFormatError(
                "ends within a line", expected: "a whole file, with a newline at the end")
        }
        var found: [Signature] = []
        for content in bytes[start..<(bytes.count - 1)].split(
            separator: newline, omittingEmptySubsequences: false)
        {
            line += 1
            guard found.count < maximumSignatures else {
                throw PolicyFormatError(
                    line: line, "is one signature too many",
                    expected: "at most \(maximumSignatures)")
            }
            guard let signature = signature(content.dropFirst(signatureKey.utf8.count)) else {
                throw PolicyFormatError(
                    line: line, "is not a signature",
                    expected: "`\(signatureKey)\(PolicyPublicKey.prefix)KEY SIGNATURE`, both in "
                        + "base64")
            }
            guard !found.contains(where: { $0.key == signature.key }) else {
                throw PolicyFormatError(
                    line: line, "is a second signature by one key", expected: "one for each key")
            }
            found.append(signature)
        }
        return found
    }

    private static func signature(_ text: ArraySlice<UInt8>) -> Signature? {
        guard let text = String(validating: text, as: UTF8.self) else { return nil }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let key = PolicyPublicKey(parts[0]),
            let bytes = Base64.decode(parts[1].utf8), bytes.count == 64
        else { return nil }
        return Signature(key: key, bytes: bytes)
    }
}

// MARK: Writing

extension PolicyEnvelope {
    /// The header of a new policy.
    package static func header(serial: Int64, expires: Int64) -> String {
        """
        \(versionKey)\(version)
        \(serialKey)\(serial)
        \(expiresKey)\(CivilDate.text(secondsSince1970: expires))

        """
    }

    /// What is to be signed so that this policy applies again, under another serial.
    package func again(serial: Int64, expires: Int64) -> [UInt8] {
        // The first three lines are the header.
        let lines = signed.split(
            separator: Self.newline, maxSplits: 3, omittingEmptySubsequences: false)
        return Array(Self.header(serial: serial, expires: expires).utf8) + lines[3]
    }

    /// The line of a signature.
    package static func line(_ signature: Signature) -> String {
        "\(signatureKey)\(signature.key) \(Base64.encode(signature.bytes))\n"
    }
}

/// Why a file is not a signed policy.
package struct PolicyFormatError: Error, Sendable, Equatable {
    /// From 1; `nil` if it is about the file as a whole.
    package var line: Int?
    /// Completes "the line … " or "the file … ".
    package var problem: String
    package var expected: String

    init(line: Int? = nil, _ problem: String, expected: String) {
        (self.line, self.problem, self.expected) = (line, problem, expected)
    }
}
