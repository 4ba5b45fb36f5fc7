import HTTPCore

/// A password as a file of users keeps it: a slow, salted hash that the system's libraries can
/// check. Any other form is refused, with how to mend it.
package struct PasswordHash: Sendable, Hashable {
    /// The function, with what decides the cost of one check.
    package enum Scheme: Sendable, Hashable {
        /// `$2y$`, `$2a$`, `$2b$`: 2 to the power of the cost rounds.
        case bcrypt(cost: Int)
        /// `$5$`.
        case sha256(rounds: Int)
        /// `$6$`.
        case sha512(rounds: Int)
        /// `$y$`, with its parameters as written.
        case yescrypt(parameters: String)
        /// `$argon2id$`, `$argon2i$`.
        case argon2(Argon2Cost)
    }

    /// The function that checks it.
    package let scheme: Scheme
    /// The hash as written, ASCII without white space and colons.
    package let text: String
    /// The decoded parts of an argon2 hash; `nil` for others, which are checked by their text.
    package let argon2: Argon2Parts?

    private static let accepted = "bcrypt, SHA-crypt ($5$, $6$), yescrypt or argon2"
    private static let mend = "\(accepted): `pinfold user add FILE NAME` writes bcrypt"

    init(_ bytes: ArraySlice<UInt8>) throws(PasswordHashError) {
        guard !bytes.isEmpty else {
            throw PasswordHashError(problem: "is missing", expected: "name:hash, with \(Self.mend)")
        }
        let text = String(decoding: bytes, as: UTF8.self)
        self.text = text
        let parts = text.utf8.split(separator: UInt8(ascii: "$"), omittingEmptySubsequences: false)
            .map { Array($0) }
        guard parts.count > 2, parts[0].isEmpty else { throw Self.refusal(ofUnmarked: bytes) }
        var argon2: Argon2Parts?
        switch String(decoding: parts[1], as: UTF8.self) {
        case "2y", "2a", "2b": scheme = try Self.bcrypt(parts)
        case "5": scheme = .sha256(rounds: try Self.rounds(parts, hashCount: 43))
        case "6": scheme = .sha512(rounds: try Self.rounds(parts, hashCount: 86))
        case "y": scheme = try Self.yescrypt(parts)
        case "argon2id", "argon2i":
            let decoded = try Argon2Parts(parts)
            scheme = .argon2(decoded.cost)
            argon2 = decoded
        case "apr1", "1":
            throw PasswordHashError(
                problem: "is stored with MD5, which is quickly guessed", expected: Self.mend)
        default:
            throw PasswordHashError(
                problem: "is stored with a function that is not supported", expected: Self.mend)
        }
        self.argon2 = argon2
    }

    private static func refusal(ofUnmarked bytes: ArraySlice<UInt8>) -> PasswordHashError {
        if bytes.starts(with: "{SHA}".utf8) || bytes.starts(with: "{SSHA}".utf8) {
            return PasswordHashError(
                problem: "is stored with SHA-1, which is quickly guessed", expected: mend)
        }
        if bytes.count == 13, bytes.allSatisfy(isCryptDigit) {
            return PasswordHashError(
                problem: "is stored with DES crypt, which is quickly guessed, or as plain text",
                expected: mend)
        }
        return PasswordHashError(problem: "is stored as plain text", expected: mend)
    }

    /// Whether a byte is a digit of crypt(5): `./0-9A-Za-z`.
    static func isCryptDigit(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: ".")
            || byte == UInt8(ascii: "/")
    }

    private static func malformed(_ name: String, _ expected: String) -> PasswordHashError {
        PasswordHashError(problem: "is not a complete \(name) hash", expected: expected)
    }

    /// `$2y$12$` and 53 digits.
    private static func bcrypt(_ parts: [[UInt8]]) throws(PasswordHashError) -> Scheme {
        guard parts.count == 4, parts[2].count == 2, let cost = number(parts[2]),
            parts[3].count == 53, parts[3].allSatisfy(isCryptDigit)
        else { throw malformed("bcrypt", "$2y$, two digits of cost, $ and 53 characters") }
        // A check takes about 0.07 ms times 2 to the power of the cost: with 16 several seconds.
        guard (4...16).contains(cost) else {
            throw PasswordHashError(
                problem: "has a bcrypt cost of \(cost)", expected: "a cost from 4 to 16")
        }
        return .bcrypt(cost: cost)
    }

    /// `$6$rounds=5000$salt$hash`, where the rounds may be absent.
    private static func rounds(_ parts: [[UInt8]], hashCount: Int) throws(PasswordHashError) -> Int
    {
        var parts = parts.dropFirst(2)
        var rounds = 5000
        if let first = parts.first, first.starts(with: "rounds=".utf8) {
            guard let written = number(Array(first.dropFirst(7))), 1000...5_000_000 ~= written
            else {
                throw PasswordHashError(
                    problem: "has a number of rounds that is not accepted",
                    expected: "1000 to 5000000 rounds")
            }
            rounds = written
            parts = parts.dropFirst()
        }
        guard parts.count == 2, let salt = parts.first, let hash = parts.last, salt.count <= 16,
            salt.allSatisfy({ isCryptDigit($0) }), hash.count == hashCount,
            hash.allSatisfy({ isCryptDigit($0) })
        else {
            throw malformed(
                "SHA-crypt", "a salt of at most 16 characters, $ and \(hashCount) characters")
        }
        return rounds
    }

    /// `$y$j9T$salt$hash`.
    private static func yescrypt(_ parts: [[UInt8]]) throws(PasswordHashError) -> Scheme {
        guard parts.count == 5, parts[2].count == 3, (1...86).contains(parts[3].count),
            parts[4].count == 43, parts[2...4].allSatisfy({ $0.allSatisfy(isCryptDigit) })
        else { throw malformed("yescrypt", "$y$, parameters, $, a salt, $ and 43 characters") }
        // The kind, the binary logarithm of N less one, and r less one, of which crypt(5) uses 8
        // and 32: a check needs 128 * N * r bytes, 16 MiB with j9T, and 256 MiB with jDT.
        let isAccepted =
            parts[2][0] == UInt8(ascii: "j") && parts[2][1] <= UInt8(ascii: "D")
            && (parts[2][2] == UInt8(ascii: "5") || parts[2][2] == UInt8(ascii: "T"))
        guard isAccepted else {
            throw PasswordHashError(
                problem: "has yescrypt parameters that are not accepted",
                expected: "a cost from 1 to 9, as with `mkpasswd -m yescrypt -R 5`")
        }
        return .yescrypt(parameters: String(decoding: parts[2], as: UTF8.self))
    }

    static func number(_ digits: [UInt8]) -> Int? {
        guard (1...9).contains(digits.count), digits.allSatisfy(ASCII.isDigit) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }
}

extension PasswordHash: CustomStringConvertible, CustomDebugStringConvertible {
    /// Never the hash itself, wherever a value is printed.
    package var description: String { "(a password's hash)" }
    package var debugDescription: String { description }
}

/// Why a text is not a hash that can be used. It contains nothing of the text.
struct PasswordHashError: Error, Equatable {
    /// Completes "the password of … ".
    var problem: String
    var expected: String
}

/// What decides the cost of a check by argon2 (RFC 9106 §3.1).
package struct Argon2Cost: Sendable, Hashable {
    package enum Variant: Sendable, Hashable { case id, i }
    package var variant: Variant
    /// 0x10 or 0x13.
    package var version: UInt32
    package var memoryKiB: UInt32
    package var passes: UInt32
    package var lanes: UInt32
}

/// An argon2 hash, decoded: `$argon2id$v=19$m=65536,t=3,p=4$salt$hash`, where salt and hash are
/// base64 without padding.
package struct Argon2Parts: Sendable, Hashable {
    package let cost: Argon2Cost
    package let salt: [UInt8]
    package let hash: [UInt8]

    init(_ parts: [[UInt8]]) throws(PasswordHashError) {
        let malformed = PasswordHashError(
            problem: "is not a complete argon2 hash",
            expected: "$argon2id$v=19$m=KiB,t=passes,p=lanes$salt$hash")
        var parts = parts.dropFirst()
        let variant: Argon2Cost.Variant = parts.first == Array("argon2id".utf8) ? .id : .i
        parts = parts.dropFirst()
        var version: UInt32 = 0x10
        if let first = parts.first, first.starts(with: "v=".utf8) {
            switch PasswordHash.number(Array(first.dropFirst(2))) {
            case 16: version = 0x10
            case 19: version = 0x13
            default: throw malformed
            }
            parts = parts.dropFirst()
        }
        let rest = Array(parts)
        guard rest.count == 3 else { throw malformed }
        let values = rest[0].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard values.count == 3, let memory = Self.value("m=", values[0]),
            let passes = Self.value("t=", values[1]), let lanes = Self.value("p=", values[2]),
            let salt = Self.unpadded(rest[1]), let hash = Self.unpadded(rest[2]),
            (8...64).contains(salt.count), [16, 32, 64].contains(hash.count)
        else { throw malformed }
        guard (1...64).contains(lanes), (1...100).contains(passes),
            memory >= 8 * lanes, memory <= 1 << 20
        else {
            throw PasswordHashError(
                problem: "has argon2 parameters that are not accepted",
                expected: "8 KiB for each lane to 1 GiB (m), 1 to 100 passes (t), 1 to 64 lanes (p)"
            )
        }
        cost = Argon2Cost(
            variant: variant, version: version, memoryKiB: UInt32(memory), passes: UInt32(passes),
            lanes: UInt32(lanes))
        self.salt = salt
        self.hash = hash
    }

    private static func value(_ name: String, _ bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.starts(with: name.utf8) else { return nil }
        return PasswordHash.number(Array(bytes.dropFirst(name.utf8.count)))
    }

    private static func unpadded(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count % 4 != 1, !bytes.contains(UInt8(ascii: "=")) else { return nil }
        let padding = (4 - bytes.count % 4) % 4
        return Base64.decode(bytes + [UInt8](repeating: UInt8(ascii: "="), count: padding))
    }
}
