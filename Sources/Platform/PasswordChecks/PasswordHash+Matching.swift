import Authentication
import CArgon2
import CCrypt

// One check of a password, by libxcrypt or libargon2: hundreds of milliseconds of processor time,
// never on a loop's thread.
extension PasswordHash {
    /// Compares a password with the hash. It blocks.
    package func outcome(of password: [UInt8]) -> CheckOutcome {
        if let argon2 { return argon2.outcome(of: password) }
        var memory: UnsafeMutableRawPointer?
        var size: Int32 = 0
        defer {
            if let memory {
                explicit_bzero(memory, Int(size))
                free(memory)
            }
        }
        // The password has no NUL: Basic allows no control characters.
        var phrase = password.map { CChar(bitPattern: $0) } + [0]
        defer {
            phrase.withUnsafeMutableBytes { bytes in
                if let start = bytes.baseAddress { explicit_bzero(start, bytes.count) }
            }
        }
        guard let made = crypt_ra(phrase, text, &memory, &size) else { return .impossible }
        let length = strlen(made)
        let expected = Array(text.utf8)
        guard length == expected.count else { return .differs }
        var difference: UInt8 = 0
        for index in 0..<length { difference |= UInt8(bitPattern: made[index]) ^ expected[index] }
        return difference == 0 ? .matches : .differs
    }
}

extension Argon2Parts {
    /// Computes all lanes on this thread: the library's own function for hashes as text starts one
    /// for each.
    fileprivate func outcome(of password: [UInt8]) -> CheckOutcome {
        var (output, password, salt) = ([UInt8](repeating: 0, count: hash.count), password, salt)
        let code = output.withUnsafeMutableBufferPointer { output in
            password.withUnsafeMutableBufferPointer { password in
                salt.withUnsafeMutableBufferPointer { salt in
                    var context = argon2_context()
                    context.out = output.baseAddress
                    context.outlen = UInt32(output.count)
                    context.pwd = password.baseAddress
                    context.pwdlen = UInt32(password.count)
                    context.salt = salt.baseAddress
                    context.saltlen = UInt32(salt.count)
                    context.t_cost = cost.passes
                    context.m_cost = cost.memoryKiB
                    context.lanes = cost.lanes
                    context.threads = 1
                    context.version = cost.version
                    context.flags = 1 << 0  // the library's copy of the password is cleared
                    switch cost.variant {
                    case .id: return argon2id_ctx(&context)
                    case .i: return argon2i_ctx(&context)
                    }
                }
            }
        }
        guard code == 0 else { return .impossible }
        let difference = zip(output, hash).reduce(UInt8(0)) { $0 | $1.0 ^ $1.1 }
        return difference == 0 ? .matches : .differs
    }
}
