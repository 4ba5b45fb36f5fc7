import HTTPCore
import Trust

/// A file of public keys that tokens are verified with: a JWK Set (RFC 7517 §5), or one public key
/// in PEM (RFC 7468 §13). Pure: it is given the content.
package struct KeyFile: Sendable, Equatable {
    package struct Key: Sendable, Equatable {
        /// How tokens name it, in UTF-8; `nil` if they cannot.
        package var id: [UInt8]?
        package var key: VerificationKey
    }

    /// How many keys a file may have. A token that names none is tried with all of its algorithm.
    package static let maximumKeys = 16
    /// The longest name of a key, in bytes.
    static let maximumIDBytes = 256

    package static let form = "a JWK Set with public keys, or a public key in PEM"

    /// The file's absolute path.
    package let path: String
    package let keys: [Key]
    /// Why others of its keys are not used, one sentence each.
    package let remarks: [String]

    /// - Parameter content: the content of the file.
    package init(path: String, content: [UInt8]) throws(KeyFileError) {
        self.path = path
        let isJSON = content.first { !ASCII.isWhitespace($0) } == UInt8(ascii: "{")
        guard isJSON else {
            keys = [Key(id: nil, key: try Self.key(pem: content))]
            remarks = []
            return
        }
        let root: JSONValue
        do throws(JSONSyntaxError) { root = try JSONReader.read(content[...]) } catch {
            let before = content.prefix(max(0, error.position - 1))
            throw KeyFileError(
                "is not JSON: \(error.text)", line: before.count { $0 == 0x0A } + 1,
                expected: Self.form)
        }
        guard case .array(let elements)? = root[exactly: "keys"] else {
            throw KeyFileError(
                root[exactly: "kty"] == nil ? "has no list \"keys\"" : "is a single key",
                expected: #"{"keys": [...]} (RFC 7517 §5)"#)
        }
        var keys: [Key] = []
        var remarks: [String] = []
        for (index, element) in elements.enumerated() {
            let reader = KeyReader(place: "keys[\(index)]", value: element)
            switch try reader.read() {
            case .unused(let why): remarks.append("keys[\(index)] is not used: \(why)")
            case .key(let key):
                let isRepeated = keys.contains { known in
                    known.id != nil && known.id == key.id
                        && known.key.algorithm == key.key.algorithm
                }
                guard !isRepeated else {
                    throw reader.error("has the same kid and algorithm as an earlier key")
                }
                keys.append(key)
            }
        }
        guard !keys.isEmpty else {
            let why = remarks.first.map { " (\($0))" } ?? ""
            throw KeyFileError(
                "has no key that tokens can be verified with\(why)",
                expected: "a key for RS256, ES256 or EdDSA with Ed25519")
        }
        guard keys.count <= Self.maximumKeys else {
            throw KeyFileError(
                "has \(keys.count) keys", expected: "at most \(Self.maximumKeys)")
        }
        self.keys = keys
        self.remarks = remarks
    }

    private static func key(pem content: [UInt8]) throws(KeyFileError) -> VerificationKey {
        let blocks: [PEMBlock]
        do throws(PinError) { blocks = try PEM.blocks(content) } catch {
            throw KeyFileError("is not readable as PEM", expected: form)
        }
        if blocks.contains(where: { $0.label.hasSuffix("PRIVATE KEY") }) {
            throw KeyFileError(
                "has a private key, which is the issuer's secret",
                expected: "its public key: `openssl pkey -pubout` prints it")
        }
        guard blocks.count == 1, let block = blocks.first, block.label == "PUBLIC KEY" else {
            throw KeyFileError(
                blocks.isEmpty ? "is neither JSON nor PEM" : "is not one public key", expected: form
            )
        }
        do throws(VerificationKeyError) { return try VerificationKey(der: block.bytes) } catch {
            throw KeyFileError("its key \(error.problem)", expected: error.expected)
        }
    }

    /// The keys that may have signed what names this key, or none, and this algorithm.
    func candidates(id: [UInt8]?, _ algorithm: SignatureAlgorithm) -> [VerificationKey] {
        keys.compactMap { known in
            guard known.key.algorithm == algorithm else { return nil }
            return known.id == nil || id == nil || known.id == id ? known.key : nil
        }
    }

    /// Whether a key is one of these.
    package func contains(_ key: VerificationKey) -> Bool { keys.contains { $0.key == key } }
}

/// What is wrong in a file of keys. It contains nothing of a key.
package struct KeyFileError: Error, Equatable, Sendable {
    /// The line, from 1; `nil` if it is not about one.
    package var line: Int?
    /// What is wrong, as a sentence without a subject's path.
    package var problem: String
    package var expected: String

    init(_ problem: String, line: Int? = nil, expected: String) {
        self.problem = problem
        self.line = line
        self.expected = expected
    }
}

extension VerificationKeyError {
    /// Completes "the key … ".
    var problem: String {
        switch self {
        case .malformed: "is not a valid public key"
        case .unsupported: "is of a kind that is not supported"
        case .tooShort(let bits): "has \(bits) bits, which is too short to be safe"
        case .tooLong(let bits): "has \(bits) bits, which is too slow"
        case .exponent: "has a public exponent that is even, less than 3 or longer than 64 bits"
        case .lowOrder: "is a point of low order, for which signatures need no private key"
        case .notCanonical: "is a point that is not encoded canonically"
        }
    }

    var expected: String {
        switch self {
        case .malformed, .unsupported, .tooShort, .tooLong: Self.anyKey
        case .exponent: "an odd number from 3 to 2^64 - 1, as 65537 (RFC 8017 §3.1)"
        case .lowOrder: "a key that was made from a private key"
        case .notCanonical: "a y less than 2^255 - 19 (RFC 8032 §5.1.3)"
        }
    }

    /// What is expected if nothing more is known.
    static let anyKey = """
        an RSA key of \(VerificationKey.rsaBits.lowerBound) to \
        \(VerificationKey.rsaBits.upperBound) bits, or a key on P-256 or Ed25519
        """
}

/// Reads one key of a set (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2).
private struct KeyReader {
    let place: String
    let value: JSONValue

    enum Result {
        case key(KeyFile.Key)
        /// It is for something else.
        case unused(String)
    }

    func error(_ problem: String, expected: String? = nil) -> KeyFileError {
        KeyFileError("\(place) \(problem)", expected: expected ?? VerificationKeyError.anyKey)
    }

    /// Members that only a private or symmetric key has.
    private static let secrets = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    func read() throws(KeyFileError) -> Result {
        guard case .object = value else { throw error("is \(value.name)", expected: "a key") }
        for name in Self.secrets where value[exactly: name] != nil {
            throw error(
                "has \"\(name)\", which is secret", expected: "public keys without their secrets")
        }
        guard let type = try text("kty") else { throw error("has no kty") }
        if let use = try text("use"), use != "sig" { return .unused("it is for use \(shown(use))") }
        if let operations = value[exactly: "key_ops"], !operations.lists("verify") {
            return .unused("its key_ops have no verify")
        }
        let der: [UInt8]
        let algorithm: SignatureAlgorithm
        switch type {
        case "RSA":
            der = DER.rsaKey(modulus: try bytes("n"), exponent: try bytes("e"))
            algorithm = .rs256
        case "EC":
            let curve = try text("crv") ?? ""
            guard curve == "P-256" else { return .unused("its curve is \(shown(curve))") }
            der = DER.p256Prefix + (try bytes("x", count: 32)) + (try bytes("y", count: 32))
            algorithm = .es256
        case "OKP":
            let curve = try text("crv") ?? ""
            guard curve == "Ed25519" else { return .unused("its curve is \(shown(curve))") }
            der = DER.ed25519Prefix + (try bytes("x", count: 32))
            algorithm = .edDSA
        default: return .unused("its kty is \(shown(type))")
        }
        if let name = try text("alg"), name != algorithm.rawValue {
            return .unused("its alg is \(shown(name))")
        }
        let id = try text("kid").map { Array($0.utf8) }
        guard id.map({ $0.count <= KeyFile.maximumIDBytes }) ?? true else {
            throw error("has a kid that is too long", expected: "at most 256 bytes")
        }
        do throws(VerificationKeyError) {
            return .key(KeyFile.Key(id: id, key: try VerificationKey(der: der)))
        } catch {
            throw self.error(error.problem, expected: error.expected)
        }
    }

    /// A text of the file in a form that logs may contain.
    private func shown(_ text: String) -> String {
        let isPlain = text.utf8.count <= 32 && text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
        return isPlain && !text.isEmpty ? text : "another one"
    }

    /// A member that is a string; `nil` if it is absent.
    private func text(_ name: String) throws(KeyFileError) -> String? {
        guard let member = value[exactly: name] else { return nil }
        guard case .string(let text) = member else {
            throw error("has a \(name) that is \(member.name)", expected: "a string")
        }
        return text
    }

    private func bytes(_ name: String, count: Int? = nil) throws(KeyFileError) -> [UInt8] {
        guard let text = try text(name), let bytes = Base64.decode(urlSafe: text.utf8),
            !bytes.isEmpty, count.map({ bytes.count == $0 }) ?? true
        else {
            throw error(
                "has no usable \(name)",
                expected: count.map { "\($0) bytes in base64url" } ?? "a number in base64url")
        }
        return bytes
    }
}

extension JSONValue {
    /// The value of an object's member whose name has exactly these bytes: `String` also equates
    /// texts that Unicode calls equivalent.
    subscript(exactly name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    /// Whether it is a list with this string in it.
    func lists(_ text: String) -> Bool {
        guard case .array(let elements) = self else { return false }
        return elements.contains { $0.isString(text) }
    }

    /// Whether it is a string of exactly these bytes.
    func isString(_ text: String) -> Bool {
        guard case .string(let own) = self else { return false }
        return own.utf8.elementsEqual(text.utf8)
    }
}
