"""RecBole: its BPR with given embeddings, evaluated among negatives that it draws."""

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.trainer import Trainer
from recbole.utils import get_model, init_seed
from scipy.sparse import csr_matrix
from suites.agreement.rivals.recbole import METRICS

NAMES = ("ndcg@k", "precision@k", "recall@k", "hit_rate@k", "mrr@k", "map@k")
SEED = 3

FOLDER = tempfile.mkdtemp()
os.chdir(FOLDER)  # it writes its logs here


def answer(problem):
    write(problem)
    config = Config(model="BPR", dataset="clicks", config_dict=options(problem))
    dataset = create_dataset(config)
    train_data, _, test_data = data_preparation(config, dataset)
    model = get_model("BPR")(config, train_data.dataset)
    users, items = (
        dataset.field2id_token[field][1:].astype(int) for field in ("user_id", "item_id")
    )
    with torch.no_grad():
        model.user_embedding.weight[1:] = torch.from_numpy(problem.user_factors[users])
        model.item_embedding.weight[1:] = torch.from_numpy(problem.item_factors[items])
    trainer = Trainer(config, model)
    init_seed(SEED, reproducibility=True)
    drawn = csr_matrix(problem.shape)
    for batch, *_ in test_data:
        rows, columns = users[batch["user_id"] - 1], items[batch["item_id"] - 1]
        drawn += csr_matrix((np.ones(len(rows)), (rows, columns)), problem.shape)
    init_seed(SEED, reproducibility=True)  # for the same negatives again
    found = trainer.evaluate(test_data, load_best_model=False)
    return {
        "values": {name: found[f"{METRICS[name].lower()}@{problem.k}"] for name in NAMES},
        "given": {"candidates": drawn},
    }


def write(problem):
    """Write its three files; the first two have the seen items, which it does not sample."""
    folder = Path(FOLDER, "clicks")
    folder.mkdir(exist_ok=True)
    seen = np.transpose(problem.train.nonzero())
    parts = {"train": seen[::2], "valid": seen[1::2]}
    parts["test"] = np.transpose(problem.validation.nonzero())
    for part, pairs in parts.items():
        lines = ["user_id:token\titem_id:token", *(f"{user}\t{item}" for user, item in pairs)]
        (folder / f"clicks.{part}.inter").write_text("\n".join([*lines, ""]))


def options(problem):
    return {
        "data_path": FOLDER,
        "checkpoint_dir": FOLDER,
        "benchmark_filename": ["train", "valid", "test"],
        "load_col": {"inter": ["user_id", "item_id"]},
        "eval_args": {"mode": {"valid": "uni100", "test": "uni100"}},
        "metrics": [METRICS[name] for name in NAMES],
        "valid_metric": f"NDCG@{problem.k}",
        "topk": [problem.k],
        "metric_decimal_place": 15,
        "embedding_size": problem.user_factors.shape[1],
        "use_gpu": False,
        "show_progress": False,
    }
