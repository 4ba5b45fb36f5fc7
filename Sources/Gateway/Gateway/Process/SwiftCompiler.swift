import CLinux

/// The compiler that the program was built with.
enum SwiftCompiler {
    /// Its version, as printed by `swift --version`.
    static let version = text(of: PINFOLD_SWIFT_COMPILER)

    /// The version for a number in the compiler's encoding: two digits each for the minor version
    /// and the patch. 0 for unknown.
    static func text(of number: Int) -> String {
        guard number > 0 else { return "unknown" }
        let (major, minor, patch) = (number / 10_000, number / 100 % 100, number % 100)
        return patch == 0 ? "\(major).\(minor)" : "\(major).\(minor).\(patch)"
    }
}
