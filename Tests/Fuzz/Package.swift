// swift-tools-version: 6.2
import PackageDescription

/// The fuzz targets with libFuzzer. `deploy/fuzz` makes the folder that this is built in: `Sources`
/// there are links to the folders of the repository, so that the product's package knows nothing of
/// it. All of Swift and C++ is instrumented, for coverage and with AddressSanitizer.
let swift: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .unsafeFlags(["-sanitize=fuzzer,address", "-D", "ADDRESS_SANITIZER"]),
]
let instrumented = ["-fsanitize=fuzzer-no-link,address"]
let cxx: [CXXSetting] = [.unsafeFlags(instrumented)]

let package = Package(
    name: "pinfold",
    targets: [
        .systemLibrary(name: "CExpat", pkgConfig: "expat"),
        .target(name: "CRapidJSON", cxxSettings: cxx),
        .target(
            name: "Notation",
            swiftSettings: swift + [.enableExperimentalFeature("Lifetimes")]),
        .target(
            name: "Documents", dependencies: ["CExpat", "CRapidJSON", "Notation"],
            swiftSettings: swift),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib"),
        .systemLibrary(name: "CBrotli", pkgConfig: "libbrotlienc"),
        .target(name: "CRE2", cxxSettings: cxx, linkerSettings: [.linkedLibrary("re2")]),
        .target(
            name: "CImages", cSettings: [.unsafeFlags(instrumented)],
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"),
                .linkedLibrary("webpdemux"),
            ]),
        .target(name: "Addressing", dependencies: ["Notation"], swiftSettings: swift),
        .target(
            name: "HTTPCore", dependencies: ["Notation", "Addressing"], swiftSettings: swift),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl"),
        .target(
            name: "CachePolicy", dependencies: ["COpenSSL", "Notation", "HTTPCore"],
            swiftSettings: swift),
        .target(
            name: "CertificateProfile", dependencies: ["Notation", "Addressing"],
            swiftSettings: swift),
        .target(
            name: "Pinning", dependencies: ["Notation", "Addressing", "CertificateProfile"],
            swiftSettings: swift),
        .target(
            name: "PinfoldConfiguration",
            dependencies: ["Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning"],
            swiftSettings: swift),
        .target(
            name: "ContentCoding", dependencies: ["CZlib", "CBrotli", "Notation"],
            swiftSettings: swift),
        .target(
            name: "Transformation",
            dependencies: [
                "Notation", "HTTPCore", "CachePolicy", "Documents", "ContentCoding",
                "PinfoldConfiguration",
            ], swiftSettings: swift),
        .target(
            name: "JSONSchema",
            dependencies: ["CRE2", "Notation", "Addressing", "Documents", "Transformation"],
            swiftSettings: swift),
        .target(name: "ImageCodecs", dependencies: ["CImages"], swiftSettings: swift),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1"),
        // What reads YAML, without the keys of a configuration, which need nearly every module.
        .target(
            name: "ConfigurationFile", dependencies: ["CYAML"],
            sources: [
                "Loading/ConfigurationError.swift", "Reading/ConfigNode.swift",
                "Reading/Quoting.swift", "Reading/YAMLDocument.swift", "Reading/YAMLEvents.swift",
                "Reading/YAMLSyntaxProblem.swift",
            ], swiftSettings: swift),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Documents", "ContentCoding", "JSONSchema", "PinfoldConfiguration", "HTTPCore",
                "Transformation", "ImageCodecs", "ConfigurationFile",
            ], swiftSettings: swift),
        .systemLibrary(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: ["CFuzzer", "FuzzTargets"],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-sanitize=address"])],
            linkerSettings: [.unsafeFlags(["-sanitize=address"])]),
    ])
