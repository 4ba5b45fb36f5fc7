import Authentication
import CCrypt

/// How a new password is hashed.
package enum NewPasswordHash: Sendable, Equatable {
    /// `$2y$`, as Apache's `htpasswd -B` writes it, which every other reader of such files knows.
    case bcrypt(cost: Int)
    /// `$y$`, which needs memory as well as time to guess.
    case yescrypt(cost: Int)

    /// The costs that are accepted in files.
    package var costs: ClosedRange<Int> {
        switch self {
        case .bcrypt: 4...16
        case .yescrypt: 1...9
        }
    }

    /// The hash of a password with a salt of the system's. It blocks.
    /// - Parameter password: without NUL.
    /// - Returns: `nil` if the library cannot make it.
    package func hash(of password: [UInt8]) -> String? {
        let (prefix, cost) =
            switch self {
            case .bcrypt(let cost): ("$2y$", cost)
            case .yescrypt(let cost): ("$y$", cost)
            }
        guard let setting = crypt_gensalt_ra(prefix, UInt(cost), nil, 0) else { return nil }
        defer { free(setting) }
        var memory: UnsafeMutableRawPointer?
        var size: Int32 = 0
        defer {
            if let memory {
                explicit_bzero(memory, Int(size))
                free(memory)
            }
        }
        let phrase = password.map { CChar(bitPattern: $0) } + [0]
        return crypt_ra(phrase, setting, &memory, &size).map { String(cString: $0) }
    }
}
