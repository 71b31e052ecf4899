//! Small runs, for tests of all kinds.

/// A small file of each kind, or several if its rounds can differ.
pub(crate) const SMALL: [&str; 24] = [
    "experiment = \"calls\"\n[settings]\ncalls = \"MQ==,Mg==,Mw==,NA==,NQ==\"\nslice = 2\nanswer_bytes = 64",
    "experiment = \"dispatch\"\n[settings]\nrounds = 3\ntasks = 5\npayload_bytes = 100\nreply_bytes = 50\nshared_bytes = 9",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nfathers = 4\ngenerations = 4\ngames = 20\nslice = 7",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nside = \"X\"\ngenerations = 4\nfitness = \"exact\"",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\ngenerations = 4\ngames = 20\nwin = 3\ndraw = 1\npenalty = 0.5",
    "experiment = \"league\"\nreplicas = 1",
    "experiment = \"league\"\nplayers = [{ who = \"random\" }, { who = \"filtered\" }, { who = \"alpha-beta:1\" }]\n\
     [settings]\ngame = \"connect-four\"\npairs = 7\npairs_a_round = 3",
    "experiment = \"menace\"\n[settings]\ngames = 60\nslice = 25",
    "experiment = \"menace\"\n[settings]\ngames = 60\nside = \"O\"\nopponent = \"itself\"\nmoves = \"all\"\nevery = 30\nslice = 9",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nrandom_games = 6\nslice = 5",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 0\nstrings = \"long\"\nside = \"O\"",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nclasses = \"symmetries\"\nslice = 5",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\ncycles_per_task = 4",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\nfarming = \"couples\"\ncouples_per_task = 4",
    "experiment = \"rules\"\n[settings]\nagents = 6\nrules = 300\ncycles = 5\ncycles_per_task = 2",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nevaluations = 300\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nfarming = \"evaluations\"\nalgorithm = \"traditional\"",
    "experiment = \"nndtf\"\n[settings]\nevaluations = 300\noffspring = 10\nalgorithm = \"cma-es\"\nsegment = 3",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nhidden = 5\ngene_min = -2\ngene_max = 3\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nfitness = \"ratio-of-sums\"\njoins = \"offspring-too\"\n\
     parents = \"different\"\nsome = \"any-number\"\nweighs = \"bounds\"\ntraining = \"teacher-play\"\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nalgorithm = \"traditional\"\nnetwork = \"logistic\"\n\
     births = \"couple\"\nmutates = \"child\"\noccupied = \"nothing\"\nstones = \"two-each\"\nsegment = 9",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small\"\ngames = 40\ntest_every = 10\ntest_games = 5\nsegment_games = 15",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"tuples\"\ngames = 20\ntest_every = 10\ntest_games = 50\nlearners = 3\n\
     momentum = \"0.9\"\naveraging_games = 30",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small-structured\"\ngames = 30\ntest_every = 15\ntest_games = 5\n\
     learners = 4",
];
